BEGIN;
SELECT plan(30);
SELECT billing_test.clock('2027-01-31 10:30Z');

SELECT results_eq(
    $$SELECT p.plan_code, p.name, p.trial_once_per, p.grant_first_allowed, p.created_at
      FROM billing_api.create_plan('PRO', 'Pro', 9000, 'USD', 'MONTH', p_trial_days => 14, p_idempotency_key => 'k') AS p$$,
    $$VALUES ('PRO', 'Pro', 'CUSTOMER', false, '2027-01-31 10:30Z'::timestamptz)$$, 'a plan is made'
);
SELECT results_eq(
    $$SELECT pr.plan_code, pr.amount, pr.currency, pr.interval_unit, pr.interval_count, pr.trial_days, pr.effective_from
      FROM billing_api.price AS pr$$,
    $$VALUES ('PRO', 9000::bigint, 'USD', 'MONTH', 1, 14, '2027-01-31 10:30Z'::timestamptz)$$,
    'with its first price, effective at once'
);
SELECT is(
    (SELECT p.plan_code FROM billing_api.create_plan(
        'PRO', 'Pro', 9000, 'USD', 'MONTH', p_trial_days => 14, p_idempotency_key => 'k') AS p),
    'PRO', 'the same key gets the stored answer'
);
SELECT lives_ok(
    format('SELECT billing_api.create_plan(%L, %L, 0, %L, %L, 10)', 'FREE', billing_test.injection(), 'JPY', 'YEAR'),
    'a plan may be free, last ten years, and be named like SQL'
);
SELECT is(
    (SELECT pr.period_length FROM billing.price AS pr WHERE pr.currency = 'JPY'), interval '10 years',
    'the length of a period is made of unit and count'
);

SELECT billing_test.refuses(
    format('SELECT billing_api.create_plan(%s)', s.arguments), s.sqlstate, s.description
)
FROM (VALUES
    ($$'PRO', 'Pro', 9000, 'USD', 'MONTH'$$, 'SB309', 'a code that exists'),
    ($$'PRO', 'Pro', 9001, 'USD', 'MONTH', p_trial_days => 14, p_idempotency_key => 'k'$$, 'SB305', 'the key with another price'),
    ($$'X', 'X', -1, 'USD', 'MONTH'$$, 'SB106', 'a negative price'),
    ($$'X', 'X', 1000000000000001, 'USD', 'MONTH'$$, 'SB106', 'an absurd price'),
    ($$'X', 'X', NULL, 'USD', 'MONTH'$$, 'SB101', 'no price'),
    ($$'X', 'X', 1, 'XXX', 'MONTH'$$, 'SB102', 'an unknown currency'),
    ($$'X', 'X', 1, 'USD', 'FORTNIGHT'$$, 'SB101', 'an unknown interval'),
    ($$'X', 'X', 1, 'USD', NULL$$, 'SB101', 'no interval'),
    ($$'X', 'X', 1, 'USD', 'MONTH', 0$$, 'SB101', 'an interval of no months'),
    ($$'X', 'X', 1, 'USD', 'MONTH', 121$$, 'SB101', 'an interval of more than ten years'),
    ($$'X', 'X', 1, 'USD', 'MONTH', NULL$$, 'SB101', 'no count'),
    ($$'X', 'X', 1, 'USD', 'MONTH', 1, -1$$, 'SB101', 'a trial of minus one day'),
    ($$'X', 'X', 1, 'USD', 'MONTH', 1, 731$$, 'SB101', 'a trial of more than two years'),
    ($$'X', 'X', 1, 'USD', 'MONTH', 1, NULL$$, 'SB101', 'no trial days'),
    ($$'X', 'X', 1, 'USD', 'MONTH', 1, 0, NULL$$, 'SB101', 'neither grant first nor not'),
    ($$'X', 'X', 1, 'USD', 'MONTH', 1, 0, false, 'HOUSEHOLD'$$, 'SB101', 'a trial once per something unknown'),
    ($$'has space', 'X', 1, 'USD', 'MONTH'$$, 'SB101', 'a code with a space'),
    ($$'X'';--', 'X', 1, 'USD', 'MONTH'$$, 'SB101', 'a code with SQL'),
    ($$NULL, 'X', 1, 'USD', 'MONTH'$$, 'SB101', 'no code'),
    ($$'X', NULL, 1, 'USD', 'MONTH'$$, 'SB101', 'no name'),
    ($$'X', '4111111111111111', 1, 'USD', 'MONTH'$$, 'SB105', 'a card number as a name'),
    ($$'X', repeat('x', 10000000), 1, 'USD', 'MONTH'$$, 'SB101', 'a name of ten megabytes'),
    ($$repeat('x', 10000000), 'X', 1, 'USD', 'MONTH'$$, 'SB101', 'a code of ten megabytes'),
    ($$'X', 'X', 1, 'USD', 'MONTH', p_as_of => NULL$$, 'SB104', 'no p_as_of')
) AS s (arguments, sqlstate, description);
SELECT billing_test.refuses(
    'UPDATE billing.price SET amount = 1', 'SB901', 'a price is never changed'
);

SELECT * FROM finish();
ROLLBACK;
