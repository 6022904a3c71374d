BEGIN;
SELECT plan(12);
SELECT billing_test.clock('2027-01-31 10:30Z');

CREATE TEMPORARY VIEW figure AS
SELECT m.name, m.labels, m.value FROM billing_worker.metrics() AS m;

SELECT is_empty(
    $$SELECT name, labels FROM figure GROUP BY name, labels HAVING count(*) > 1$$, 'every figure stands there once'
);
SELECT is_empty($$SELECT name FROM figure WHERE value IS NULL OR value < 0$$, 'every figure has a value');
SELECT is(
    (SELECT value FROM figure WHERE name = 'billing_renewal_backlog_age_seconds'), 0::numeric, 'nothing is due'
);

SELECT billing_test.plan();
SELECT billing_test.customer('c');
SELECT billing_test.paid_subscription(64);
SELECT is(
    (SELECT value FROM figure WHERE name = 'billing_attempts_newest' AND labels ->> 'status' = 'SUCCEEDED'), 1::numeric,
    'a payment has succeeded'
);
SELECT is((SELECT value FROM figure WHERE name = 'billing_renewal_backlog'), 0::numeric, 'what is paid is not due');

SELECT billing_ops.set_clock('2027-03-01 10:30Z');
SELECT is((SELECT value FROM figure WHERE name = 'billing_renewal_backlog'), 1::numeric, 'until its period ends');
SELECT is(
    (SELECT value FROM figure WHERE name = 'billing_renewal_backlog_age_seconds'),
    (SELECT extract(epoch FROM billing.now() - s.next_renewal_at) FROM billing.subscription AS s), 'since then it waits'
);
SELECT billing_worker.renew_due(10);
SELECT is((SELECT value FROM figure WHERE name = 'billing_renewal_backlog'), 0::numeric, 'renewed it waits no longer');
SELECT is(
    (SELECT value FROM figure WHERE name = 'billing_collection_backlog' AND labels ->> 'lane' = 'backlog'), 1::numeric,
    'but for its money'
);
SELECT billing_ops.pause_collecting();
SELECT is(
    (SELECT value FROM figure WHERE name = 'billing_stopped' AND labels ->> 'what' = 'collecting'), 1::numeric,
    'which an operator has stopped'
);
SELECT is(
    (SELECT value FROM figure WHERE name = 'billing_gateway_rate_limit' AND labels ->> 'operation' = 'refund'), 200::numeric,
    'an operation without a rate of its own has the usual one'
);
SELECT lives_ok($$SELECT billing_test.run_as('billing_http', 'SELECT billing_worker.metrics()')$$, 'the door may tell');

SELECT * FROM finish();
ROLLBACK;
