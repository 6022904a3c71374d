BEGIN;
SELECT plan(15);
SELECT billing_test.clock('2027-01-31Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.subscription(64);

SELECT isnt(billing_ops.pause_collecting('sim'), NULL, 'one account is stopped');
SELECT is(billing_test.collect(), 0, 'nothing is attempted through it');
SELECT is(
    billing_ops.pause_collecting('sim'), (SELECT a.collecting_paused_at FROM billing.gateway_account AS a),
    'stopping it again keeps since when'
);
SELECT isnt(b.collecting_paused_at, NULL, 'the backlog says so') FROM billing_ops.collection_backlog AS b;
SELECT is(billing_ops.resume_collecting('sim'), NULL, 'it is let go');
SELECT isnt(billing_ops.pause_collecting(), NULL, 'all collecting is stopped');
SELECT is(billing_test.collect(), 0, 'nothing is attempted at all');
SELECT is(
    (SELECT w.thrown_by FROM billing.operator_switch AS w WHERE w.name = 'COLLECTING'), session_user::text,
    'the switch says who stopped it'
);
SELECT is(billing_ops.resume_collecting(), NULL, 'it is let go');
SELECT is(billing_test.collect(), 1, 'and what is due is attempted');
SELECT billing_test.refuses($$SELECT billing_ops.pause_collecting('nix')$$, 'SB206', 'an unknown account cannot be stopped');

SELECT isnt(billing_ops.pause_renewing(), NULL, 'renewing is stopped');
SELECT is(billing_worker.renew_due(10, '2027-02-28Z'), 0, 'nothing is renewed');
SELECT is(billing_ops.resume_renewing(), NULL, 'it is let go');
SELECT is(billing_worker.renew_due(10, '2027-02-28Z'), 1, 'and what is due is renewed');

SELECT * FROM finish();
ROLLBACK;
