BEGIN;
SELECT plan(16);
SELECT billing_test.clock('2027-01-31Z');
SELECT billing_test.plan('PRO', 9000, p_trial_days => 14);
SELECT billing_test.customer('c');

SELECT results_eq(
    $$SELECT pr.plan_code, pr.amount, pr.currency, pr.interval_unit, pr.interval_count, pr.trial_days, pr.effective_from
      FROM billing_api.add_price('PRO', 9900, 'USD', '2027-03-01 00:00:00.9Z', 'k') AS pr$$,
    $$VALUES ('PRO', 9900::bigint, 'USD', 'MONTH', 1, 14, '2027-03-01Z'::timestamptz)$$,
    'a price version keeps interval and trial of its plan, and counts from a whole second'
);
SELECT is(
    (SELECT pr.price_id FROM billing_api.add_price('PRO', 9900, 'USD', '2027-03-01 00:00:00.9Z', 'k', '2027-02-14Z') AS pr),
    (SELECT max(pr.price_id) FROM billing_api.price AS pr), 'the same key gets the stored answer'
);
SELECT lives_ok(
    $$SELECT billing_api.add_price('PRO', 8500, 'EUR', '2027-01-31Z')$$, 'another currency may begin at once'
);

SELECT is(s.unit_amount, 9000::bigint, 'a subscription begun before pins the old price')
FROM billing_api.create_subscription(64, 'PRO', 's1', 'early', p_as_of => '2027-02-28 23:59:59Z') AS s;
SELECT is(s.unit_amount, 9900::bigint, 'one begun at that second pins the new price')
FROM billing_api.create_subscription(64, 'PRO', 's2', 'late', p_as_of => '2027-03-01Z') AS s;
SELECT is(s.unit_amount, 8500::bigint, 'one in euro pins the price in euro')
FROM billing_api.create_subscription(64, 'PRO', 's3', 'euro', p_currency => 'EUR') AS s;
SELECT is(
    (SELECT s.unit_amount FROM billing_api.subscription AS s WHERE s.resource_ref = 'early'), 9000::bigint,
    'and those that run keep their price'
);

SELECT billing_test.refuses(format('SELECT billing_api.add_price(%s)', s.arguments), s.sqlstate, s.description)
FROM (VALUES
    ($$'PRO', 1, 'USD', '2027-03-01Z'$$, 'SB309', 'a second price from the same instant'),
    ($$'NIX', 1, 'USD', '2027-03-01Z'$$, 'SB203', 'an unknown plan'),
    ($$NULL, 1, 'USD', '2027-03-01Z'$$, 'SB203', 'no plan'),
    ($$'PRO', -1, 'USD', '2027-04-01Z'$$, 'SB106', 'a negative price'),
    ($$'PRO', 1, 'XXX', '2027-04-01Z'$$, 'SB102', 'an unknown currency'),
    ($$'PRO', 1, 'USD', NULL$$, 'SB101', 'no instant'),
    ($$'PRO', 1, 'USD', 'infinity'$$, 'SB101', 'no finite instant'),
    ($$'PRO', 9901, 'USD', '2027-03-01 00:00:00.9Z', 'k'$$, 'SB305', 'the key with another price')
) AS s (arguments, sqlstate, description);

UPDATE billing.database_identity SET is_test = false;
SELECT billing_test.refuses(
    $$SELECT billing_api.add_price('PRO', 1, 'USD', '2027-01-30 23:59:59Z')$$, 'SB104',
    'an internal system makes no price for the past', 'billing_app'
);

SELECT * FROM finish();
ROLLBACK;
