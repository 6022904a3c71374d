-- A copy sends nothing until an operator says what it is; then it repeats nothing that its original did.
BEGIN;
SELECT plan(34);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64, p_resource_ref => 'paid');
SELECT billing_test.subscription(64, p_resource_ref => 'due');
SELECT billing_test.subscription(64, p_resource_ref => 'sent');
UPDATE billing.invoice SET next_attempt_at = NULL WHERE invoice_id = 128;
SELECT is(billing_test.start('2027-05-01Z'), 128::bigint, 'one charge is on its way');
UPDATE billing.invoice SET next_attempt_at = '2027-05-01Z' WHERE invoice_id = 128;
SELECT billing_api.refund_invoice(64, 100, 'r');
CREATE TEMPORARY TABLE prefix AS SELECT d.key_prefix FROM billing.database_identity AS d;

-- Restored on another server.
UPDATE billing.database_identity SET system_identifier = 1;
SELECT is(billing_test.start('2027-05-01Z'), NULL, 'nothing is started');
SELECT is(
    (SELECT c.interactive + c.backlog FROM billing_worker.count_due_invoices('sim', 10) AS c), 0, 'nothing counts as due'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.attempts_to_look_up('sim', 10, '2027-06-02Z')), 0::bigint, 'nothing is asked'
);
SELECT is((SELECT count(*) FROM billing_worker.start_refunds('sim', 10, 'w')), 0::bigint, 'no money goes back');
SELECT is(billing_worker.renew_due(10, '2027-06-02Z'), 0, 'nothing is renewed');
SELECT is((SELECT count(*) FROM billing_worker.lease_outbox('relay', 10)), 0::bigint, 'nothing is published');
SELECT is((SELECT a.collecting_paused FROM billing_worker.gateway_accounts() AS a), true, 'workers are told');
SELECT is((SELECT v.check_name FROM billing_ops.check_integrity() AS v), 'identity', 'and so are people');
SELECT throws_ok($$SELECT billing_ops.adopt_database('copy')$$, 'SB101', NULL, 'it is one or the other');
SELECT throws_ok($$SELECT billing_ops.adopt_database(NULL)$$, 'SB101', NULL, 'and not nothing');

SELECT is(
    (SELECT d.key_prefix FROM billing_ops.adopt_database('restored') AS d),
    (SELECT p.key_prefix FROM prefix AS p), 'restored keeps its prefix'
);
SELECT ok(nextval('billing.invoice_id_seq') > 640000000, 'ids jump over those that the lost one may have used');
SELECT is((SELECT nextval('billing.invoice_id_seq') % 64), 0::bigint, 'and still name their shard');
SELECT is(
    (SELECT concat_ws(' ', a.status, a.lease_until, a.next_lookup_at = billing.now())
     FROM billing.payment_attempt AS a WHERE a.attempt_id = 128),
    'UNKNOWN t', 'the charge on its way is looked up'
);
SELECT is(billing_test.start('2027-05-01Z'), NULL, 'the due one is not sent');
SELECT is(
    (SELECT concat_ws(' ', a.status, a.attempt_no, a.send_count) FROM billing.payment_attempt AS a WHERE a.invoice_id = 128),
    'UNKNOWN 1 0', 'but looked up, under the key of its next try'
);
SELECT is((SELECT count(*) FROM billing_worker.attempts_to_look_up('sim', 10)), 2::bigint, 'both are asked about');
SELECT is((SELECT count(*) FROM billing_worker.refunds_to_look_up('sim', 10)), 1::bigint, 'and the refund as well');

-- The lost one had tried it: declined. The next try is looked up in its turn, and found paid.
SELECT billing_test.report(a.attempt_id, 'DECLINED', '2027-05-01Z', 'insufficient_funds', 'LOOKUP', 'p1')
 FROM billing.payment_attempt AS a WHERE a.invoice_id = 128;
SELECT is((SELECT i.failure_count FROM billing.invoice AS i WHERE i.invoice_id = 128), 1, 'the decline is learned');
SELECT is(billing_test.start('2027-05-03Z'), NULL, 'the second try is not sent either');
SELECT is(
    (SELECT q.idempotency_key LIKE '%-inv-128-try-2'
     FROM billing_worker.attempts_to_look_up('sim', 10, '2027-05-03Z') AS q WHERE q.send_no = 0),
    true, 'but looked up'
);
SELECT billing_test.report(max(a.attempt_id), 'SUCCEEDED', '2027-05-03Z', p_source => 'LOOKUP', p_payment_id => 'p2')
 FROM billing.payment_attempt AS a WHERE a.invoice_id = 128;
SELECT is(
    (SELECT i.status FROM billing.invoice AS i WHERE i.invoice_id = 128), 'PAID', 'what was paid then is paid, without a charge'
);

-- Found nowhere it is sent, with the same key.
SELECT billing_test.report(128, 'NOT_FOUND', '2027-05-03Z', p_source => 'LOOKUP');
SELECT billing_worker.attempts_to_look_up('sim', 10, '2027-05-04Z');
SELECT billing_test.report(128, 'NOT_FOUND', '2027-05-04Z', p_source => 'LOOKUP');
SELECT is(
    (SELECT c.kind FROM billing_ops.open_cases AS c),
    'UNKNOWN_OUTCOME', 'one that was sent, with a lapsed key, is laid before a person'
);
SELECT billing_test.subscription(64, p_resource_ref => 'later');
UPDATE billing.invoice SET look_up_first = true WHERE next_attempt_at IS NOT NULL;
SELECT is(billing_test.start('2027-05-04Z'), NULL, 'another one is looked up');
SELECT billing_worker.attempts_to_look_up('sim', 10, '2027-05-04 00:20Z');
SELECT billing_test.report(max(a.attempt_id), 'NOT_FOUND', '2027-05-04 00:20Z', p_source => 'LOOKUP') FROM billing.payment_attempt AS a;
SELECT billing_worker.attempts_to_look_up('sim', 10, '2027-05-04 00:40Z');
SELECT billing_test.report(max(a.attempt_id), 'NOT_FOUND', '2027-05-04 00:40Z', p_source => 'LOOKUP') FROM billing.payment_attempt AS a;
SELECT is(
    billing_test.start('2027-05-04 00:40Z'), (SELECT max(a.attempt_id) FROM billing.payment_attempt AS a), 'found nowhere, it is sent'
);
SELECT is(
    (SELECT bool_or(i.look_up_first) FROM billing.invoice AS i WHERE i.invoice_id = (SELECT max(n.invoice_id) FROM billing.invoice AS n)),
    false, 'and is like any other from then on'
);
SELECT is(
    (SELECT count(*) FROM billing.payment_attempt AS a WHERE a.invoice_id = (SELECT max(i.invoice_id) FROM billing.invoice AS i)),
    1::bigint, 'it stays one try'
);

-- A clone.
UPDATE billing.database_identity SET system_identifier = 1, is_test = false;
SELECT billing_ops.create_gateway_account('live', 'simulated', 'LIVE', p_as_of => pg_catalog.now());
SELECT isnt(
    (SELECT d.key_prefix FROM billing_ops.adopt_database('CLONE', pg_catalog.now()) AS d),
    (SELECT p.key_prefix FROM prefix AS p), 'a clone takes another prefix'
);
SELECT is(
    (SELECT array_agg(a.code) FROM billing.gateway_account AS a WHERE a.disabled_at IS NOT NULL), '{live}', 'its live accounts are off'
);
SELECT is(
    (SELECT a.collecting_paused FROM billing_worker.gateway_accounts() AS a WHERE a.code = 'live'),
    true, 'nothing is sent through them'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.attempts_to_look_up('live', 10, pg_catalog.now())), 0::bigint, 'nor asked'
);
SELECT is(
    (SELECT a.collecting_paused FROM billing_worker.gateway_accounts() AS a WHERE a.code = 'sim'), false, 'those for tests work'
);
SELECT is_empty($$SELECT * FROM billing_ops.check_integrity() WHERE severity = 'BROKEN'$$, 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
