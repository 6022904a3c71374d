-- Keys of callers are forgotten in time, but for those of operations that move money by themselves.
BEGIN;
SELECT plan(11);
SELECT billing_test.clock('2027-05-01Z');

INSERT INTO billing.idempotency_key (customer_id, operation, idempotency_key, request_hash, created_at, keep_for_ever)
VALUES
(64, 'create_subscription', 'older', 'h', '2027-03-01Z', false),
(64, 'create_subscription', 'old', 'h', '2027-03-31Z', false),
(64, 'create_subscription', 'a month', 'h', '2027-04-01Z', false),
(64, 'create_subscription', 'new', 'h', '2027-05-01Z', false),
(64, 'grant_credit', 'money', 'h', '2020-01-01Z', true);

SELECT is(billing_worker.drop_idempotency_keys(1), 1, 'it drops as many as it is told to');
SELECT is(
    (SELECT count(*) FROM billing.idempotency_key AS k WHERE k.idempotency_key = 'older'), 0::bigint, 'the oldest first'
);
SELECT is(billing_worker.drop_idempotency_keys(100), 1, 'then the rest of what is older than 30 days');
SELECT is(billing_worker.drop_idempotency_keys(100), 0, 'and then nothing');
SELECT results_eq(
    $$SELECT k.idempotency_key FROM billing.idempotency_key AS k ORDER BY 1$$, $$VALUES ('a month'), ('money'), ('new')$$,
    'what is exactly 30 days old stays, and what moved money stays for ever'
);
SELECT is(billing_worker.drop_idempotency_keys(100, p_as_of => '2027-05-01T00:00:01Z'), 1, 'a second later it goes');
SELECT is(billing_worker.drop_idempotency_keys(100, p_keep_days => 1, p_as_of => '2027-05-03Z'), 1, 'days are a setting');

SELECT throws_ok($$SELECT billing_worker.drop_idempotency_keys(0)$$, 'SB101', NULL, 'a limit of zero is refused');
SELECT throws_ok($$SELECT billing_worker.drop_idempotency_keys(NULL)$$, 'SB101', NULL, 'and so is none');
SELECT throws_ok(
    $$SELECT billing_worker.drop_idempotency_keys(1, p_keep_days => 0)$$, 'SB101', NULL, 'nothing is dropped on its day'
);
SELECT throws_ok(
    $$SELECT billing_worker.drop_idempotency_keys(1, p_as_of => NULL)$$, 'SB104', NULL, 'without a time there is no age'
);

SELECT * FROM finish();
ROLLBACK;
