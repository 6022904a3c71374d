BEGIN;
SELECT plan(28);
SELECT billing_test.clock('2027-01-31Z');

SELECT results_eq(
    $$SELECT d.code, d.retry_after, d.counted_from, d.jitter_minutes, d.grace, d.final_status, d.suspend_resource, d.past_due_renewal
      FROM billing_ops.create_dunning_policy('gentle', '{24:00,72:00,168:00}', 'FIRST_FAILURE', 60, '7 days 1 hour', 'EXPIRED', true, 'CONTINUE') AS d$$,
    $$VALUES ('gentle', '{24:00,72:00,168:00}'::interval[], 'FIRST_FAILURE', 60, interval '7 days 1 hour', 'EXPIRED', true, 'CONTINUE')$$,
    'a policy is made'
);
SELECT lives_ok(
    $$SELECT billing_ops.create_dunning_policy('never', '{}')$$, 'a ladder without a rung ends with the first failure'
);
SELECT lives_ok(
    $$SELECT billing_ops.create_dunning_policy('exact', '{24:00,48:00}', 'PREVIOUS_FAILURE', 30, '73 hours')$$,
    'a grace that ends with the last retry, each with its jitter, is enough: 24 h + 48 h + 2 x 30 min'
);
SELECT results_eq(
    $$SELECT billing.next_rung(d, n, '2027-01-31Z', '2027-01-31Z', 64)
      FROM billing_ops.create_dunning_policy('from_zero', '[0:1]={24:00,72:00}', 'FIRST_FAILURE') AS d, generate_series(0, 3) AS n$$,
    $$VALUES (NULL::timestamptz), ('2027-02-01Z'), ('2027-02-03Z'), (NULL)$$,
    'an array that is counted from 0 has its first span after the first failure all the same'
);
SELECT lives_ok(
    $$SELECT billing.require_ladder(d.retry_after, d.counted_from, d.jitter_minutes, d.grace) FROM billing.dunning_policy AS d$$,
    'the shipped policies contradict themselves nowhere'
);

SELECT billing_test.refuses(format('SELECT billing_ops.create_dunning_policy(%s)', s.arguments), s.sqlstate, s.description)
FROM (VALUES
    ($$'x', '{24:00,48:00}', 'PREVIOUS_FAILURE', 30, '72 hours 59 minutes'$$, 'SB107', 'a grace that ends before the last retry'),
    ($$'x', '{24:00,48:00}', 'FIRST_FAILURE', 30, '48 hours'$$, 'SB107', 'or within its jitter'),
    ($$'x', '{24:00}', p_grace => '-1 day'$$, 'SB107', 'a negative grace'),
    ($$'x', '{24:00}', p_grace => '1 month'$$, 'SB107', 'a grace whose length depends on the calendar'),
    ($$'x', '{72:00,24:00}', 'FIRST_FAILURE'$$, 'SB107', 'rungs that go back'),
    ($$'x', '{24:00,24:00}', 'FIRST_FAILURE'$$, 'SB107', 'two rungs at the same time'),
    ($$'x', '{24:00,25:00}', 'FIRST_FAILURE', 60$$, 'SB107', 'rungs that jitter may put in the wrong order'),
    ($$'x', '{24:00,00:00}'$$, 'SB107', 'a rung at once'),
    ($$'x', '{-24:00}'$$, 'SB107', 'a rung in the past'),
    ($$'x', '{24:00,NULL}'$$, 'SB107', 'a rung that is NULL'),
    ($$'x', '{1 mon}'$$, 'SB107', 'a rung whose length depends on the calendar'),
    ($$'x', '{400 days}'$$, 'SB107', 'a rung after more than a year'),
    ($$'x', '{{24:00},{48:00}}'$$, 'SB107', 'a list of lists'),
    ($$'x', array_fill(interval '1 day', '{21}')$$, 'SB107', 'more than 20 rungs'),
    ($$'x', NULL$$, 'SB107', 'no ladder'),
    ($$'x', '{24:00}', NULL$$, 'SB101', 'counted from nothing'),
    ($$'x', '{24:00}', 'NEW_YEAR'$$, 'SB101', 'counted from something unknown'),
    ($$'x', '{24:00}', p_jitter_minutes => 1441$$, 'SB101', 'a jitter of more than a day'),
    ($$'x', '{24:00}', p_jitter_minutes => NULL$$, 'SB101', 'no jitter'),
    ($$'x', '{24:00}', p_final_status => 'ACTIVE'$$, 'SB101', 'an end that is none'),
    ($$'x', '{24:00}', p_suspend_resource => NULL$$, 'SB101', 'neither suspending nor not'),
    ($$'x', '{24:00}', p_past_due_renewal => 'SKIP'$$, 'SB101', 'an unknown way to renew while past due'),
    ($$'standard', '{24:00}'$$, 'SB309', 'a code that exists')
) AS s (arguments, sqlstate, description);

SELECT * FROM finish();
ROLLBACK;
