-- D01, D03, D04: a trial that is cancelled, moved, or ends without anything to pay with.
BEGIN;
SELECT plan(30);
SELECT billing_test.plans();
SELECT billing_api.create_plan('P149', 'Pro', 14900, 'USD', 'MONTH', p_as_of => '2026-01-01Z');

CREATE FUNCTION pg_temp.trial(
    p_name text, p_plan_code text, p_days integer, p_as_of timestamptz, p_anchor_day integer, p_token text, p_term integer
)
RETURNS bigint
LANGUAGE sql
AS $function$
    SELECT s.subscription_id
    FROM billing_api.create_subscription(
        billing_test.customer(p_name, p_token => p_token), p_plan_code, 'k', p_trial_days => p_days, p_anchor_day => p_anchor_day,
        p_auto_renew => p_term IS NULL, p_term_periods => p_term, p_as_of => p_as_of
    ) AS s;
$function$;

-- D03: 30 days from 15 June end on 15 July; eleven days more cross into August.
SELECT pg_temp.trial(
    'd03', 'P149', 30, '2026-06-15Z', NULL, 'tok_ok', NULL), pg_temp.trial('d03 calendar', 'P149', 30, '2026-06-15Z', 1, 'tok_ok', NULL
);
SELECT is(s.current_period_end, '2026-07-26Z'::timestamptz, 'D03: the trial ends eleven days later')
FROM unnest('{64, 128}'::bigint[]) AS x (no)
  CROSS JOIN LATERAL billing_api.extend_trial(x.no, '2026-07-26Z', p_as_of => '2026-07-10Z') AS s;
SELECT is(billing_worker.renew_due(10, '2026-07-25 23:59:59Z'), 0, 'D03: nothing is billed before');
SELECT billing_worker.renew_due(10, '2026-07-26Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(64)', $$VALUES ('TRIAL 2026-06-15 to 2026-07-26'), ('BILLED 2026-07-26 to 2026-08-26')$$,
    'D03: the first month begins there'
);
SELECT results_eq('SELECT * FROM billing_test.invoices_of(64)', $$VALUES ('RENEWAL OPEN 14900 due', 'PERIOD 14900')$$, 'D03: for 14900');
SELECT billing_test.collect(p_as_of => '2026-07-26Z');
SELECT billing_worker.renew_due(10, '2026-08-01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(128)',
    $$VALUES ('TRIAL 2026-06-15 to 2026-07-26'), ('BILLED 2026-07-26 to 2026-08-01'), ('BILLED 2026-08-01 to 2026-09-01')$$,
    'D03: with calendar billing six days of July, then August'
);
-- 14900 x 6 / 31 = 2883.87.
SELECT results_eq(
    'SELECT i.lines FROM billing_test.invoices_of(128) AS i', $$VALUES ('PRORATION 2883'), ('PERIOD 14900')$$, 'D03: for 2883 and 14900'
);

-- Within which limits.
SELECT pg_temp.trial('limits', 'BASIC', 14, '2027-04-01Z', NULL, 'tok_ok', 2);
SELECT billing_test.refuses(
    format('SELECT billing_api.extend_trial(192, %L, p_as_of => ''2027-04-10Z'')', x.at), 'SB101', 'a trial does not end ' || x.why
)
FROM (VALUES ('2027-04-15Z', 'when it does already'), ('2027-04-14Z', 'sooner'), ('2029-05-01Z', 'after more than two years'), ('infinity',
'never'), (NULL, 'at no time'))
    AS x (at, why);
SELECT is(s.term_end_at, '2027-06-20Z'::timestamptz, 'a fixed term is counted from its end')
FROM billing_api.extend_trial(192, '2027-04-20Z', p_as_of => '2027-04-15Z') AS s;
SELECT billing_test.refuses(
    $$SELECT billing_api.extend_trial(192, '2027-05-01Z', p_as_of => '2027-04-20 00:00:01Z')$$, 'SB303', 'a second after its end it is over'
);
SELECT billing_worker.renew_due(10, '2027-04-20Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.extend_trial(192, '2027-05-01Z', p_as_of => '2027-04-20Z')$$,
    'SB303', 'R5: once it is billed it is over, paid or not'
);
SELECT billing_test.collect(p_as_of => '2027-04-20Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.extend_trial(192, '2027-05-01Z', p_as_of => '2027-04-20Z')$$, 'SB303', 'and what is paid is no trial'
);

-- D01: cancelled during the trial, no money ever moves.
SELECT pg_temp.trial('d01', 'BASIC', 14, '2027-04-01Z', NULL, 'tok_ok', NULL);
SELECT billing_api.cancel_subscription(256, true, p_as_of => '2027-04-10Z');
SELECT is(
    (SELECT array_agg(billing_api.has_access(256, NULL, x.at) ORDER BY x.at)
    FROM unnest('{2027-04-14 23:59:59Z,2027-04-15Z}'::timestamptz[]) AS x (at)),
    '{t,f}', 'D01: access lasts until the end of the trial'
);
SELECT billing_worker.renew_due(10, '2027-04-16Z');
SELECT results_eq(
    $$SELECT s.status, s.ended_at, s.end_reason FROM billing_api.subscription AS s WHERE s.subscription_id = 256$$,
    $$VALUES ('CANCELED', '2027-04-15Z'::timestamptz, 'period_end')$$, 'D01: it is cancelled at its end'
);
SELECT is_empty('SELECT i.invoice_id FROM billing.invoice AS i WHERE i.subscription_id = 256', 'D01: no invoice');

-- D04: nothing to pay with.
SELECT pg_temp.trial(
    'd04', 'BASIC', 14, '2027-04-01Z', NULL, NULL, NULL), pg_temp.trial('free', 'FREE', 14, '2027-04-01Z', NULL, NULL, NULL
);
SELECT is(
    (SELECT array_agg(billing_api.has_access(320, NULL, x.at) ORDER BY x.at)
    FROM unnest('{2027-04-14 23:59:59Z,2027-04-15Z}'::timestamptz[]) AS x (at)),
    '{t,f}', 'D04: access ends with the trial, also before anybody has taken it up'
);
SELECT billing_worker.renew_due(10, '2027-04-16Z');
SELECT results_eq(
    $$SELECT s.status, s.ended_at, s.end_reason FROM billing_api.subscription AS s WHERE s.subscription_id = 320$$,
    $$VALUES ('CANCELED', '2027-04-15Z'::timestamptz, 'no_payment_method')$$, 'D04: it is cancelled'
);
SELECT is_empty(
    'SELECT i.invoice_id FROM billing.invoice AS i WHERE i.subscription_id = 320', 'D04: nothing is billed, and so nothing is dunned'
);
SELECT billing_api.add_payment_method(320, 'sim', 'tok_new', p_as_of => '2027-04-17Z');
SELECT is(s.status, 'CANCELED', 'D04: a card that comes later revives nothing')
FROM billing_api.subscription AS s WHERE s.subscription_id = 320;
SELECT is(s.status, 'ACTIVE', 'what costs nothing needs no payment method')
FROM billing_api.subscription AS s WHERE s.subscription_id = 384;

-- What follows the trial may cost something although what was signed up for does not.
SELECT pg_temp.trial('chosen', 'FREE', 14, '2027-04-01Z', NULL, NULL, NULL);
SELECT billing_api.change_plan(448, 'BASIC', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-02Z');
SELECT is(billing_api.has_access(448, NULL, '2027-04-15Z'), false, 'access ends where what was chosen cannot be paid');
SELECT billing_worker.renew_due(10, '2027-04-16Z');
SELECT is(s.end_reason, 'no_payment_method', 'as the subscription does') FROM billing_api.subscription AS s WHERE s.subscription_id = 448;

-- B17: who buys again after the end begins then, not where the old one ended.
SELECT is(s.current_period_end, '2027-09-18Z'::timestamptz, 'B17: a new subscription begins where it is bought')
FROM billing_api.create_subscription(320, 'BASIC', 'again', p_payment_behavior => 'GRANT_FIRST', p_as_of => '2027-08-18Z') AS s;
SELECT is(i.total, 3000::bigint, 'B17: at the full price') FROM billing_api.invoice AS i WHERE i.customer_id = 320;

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
