BEGIN;
SELECT plan(11);
SELECT billing_test.clock('2027-01-31Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64);

-- The next period exists already: the renewal fails on its data and is set aside.
SELECT billing_test.subscription(64, p_resource_ref => 'other');
INSERT INTO billing.invoice (
    customer_id, subscription_id, resource_id, kind, currency, total, period_start, period_end, opens_period, drives_status, lane,
    issued_at
)
SELECT s.customer_id, s.subscription_id, s.resource_id, 'RENEWAL', 'USD', 3000, s.current_period_end, '2027-03-31Z', true, true,
    'BACKLOG', '2027-02-28Z'
FROM billing.subscription AS s WHERE s.subscription_id = 64;
SELECT is(billing_worker.renew_due(10, '2027-02-28Z'), 2, 'two are due');
SELECT results_eq(
    $$SELECT p.subscription_id, p.status, p.due_at, p.parked_at, left(p.park_reason, 5) FROM billing_ops.parked AS p$$,
    $$VALUES (64::bigint, 'ACTIVE', '2027-02-28Z'::timestamptz, '2027-02-28Z'::timestamptz, '23505')$$, 'one is parked, with the reason'
);
SELECT ok(billing_api.has_access(64, p_as_of => '2027-03-15Z'), 'its access stays');
SELECT is(billing_worker.renew_due(10, '2027-03-15Z'), 0, 'it is not tried again by itself');

UPDATE billing.invoice SET status = 'VOID', voided_at = '2027-03-15Z' WHERE kind = 'RENEWAL' AND subscription_id = 64;
SELECT results_eq(
    $$SELECT s.status, s.next_renewal_at, s.version - b.version
      FROM billing.subscription AS b, billing_ops.unpark(64, '2027-03-15Z') AS s WHERE b.subscription_id = 64$$,
    $$VALUES ('ACTIVE', '2027-02-28Z'::timestamptz, 1::bigint)$$, 'once the cause is gone it is due where it was'
);
SELECT is(
    (SELECT e.event_type FROM billing.subscription_event AS e WHERE e.subscription_id = 64 ORDER BY e.event_seq DESC LIMIT 1),
    'RenewalUnparked', 'the log says so'
);
SELECT is(billing_worker.renew_due(10, '2027-03-15Z'), 1, 'it is renewed');
SELECT is_empty('SELECT * FROM billing_ops.parked', 'nothing is parked any more');
CREATE TEMPORARY TABLE before AS SELECT billing_test.fingerprint() AS rows;
SELECT lives_ok('SELECT billing_ops.unpark(64)', 'one that is not parked is returned as it is');
SELECT is(billing_test.fingerprint(), (SELECT b.rows FROM before AS b), 'and not changed');
SELECT billing_test.refuses('SELECT billing_ops.unpark(65)', 'SB201', 'an unknown one is refused');

SELECT * FROM finish();
ROLLBACK;
