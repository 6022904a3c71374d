-- An early renewal: at most one ahead, at what was chosen for the boundary; and what it means for everything else.
BEGIN;
SELECT plan(32);
SELECT billing_test.plans();

SELECT billing_test.paid('early', 'BASIC', '2027-04-01Z');
SELECT results_eq(
    $$SELECT s.status, s.current_period_start, s.current_period_end FROM billing_api.renew_now(64, p_as_of => '2027-04-20Z') AS s$$,
    $$VALUES ('ACTIVE', '2027-05-01Z'::timestamptz, '2027-06-01Z'::timestamptz)$$, 'the current period may begin in the future'
);
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(64)', $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('RENEWAL OPEN 3000 due',
    'PERIOD 3000')$$,
    'it is billed at once'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.renew_now(64, p_as_of => '2027-04-20Z')$$, 'SB320', 'while that is owed there is no other'
);
SELECT billing_test.collect(p_as_of => '2027-04-20Z');
SELECT billing_test.refuses($$SELECT billing_api.renew_now(64, p_as_of => '2027-04-21Z')$$, 'SB323', 'at most one is renewed ahead');
SELECT billing_test.refuses($$SELECT billing_api.renew_now(64, p_as_of => '2027-04-30 23:59:59Z')$$, 'SB323', 'up to its last second');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(64, 'PRO', p_as_of => '2027-04-21Z')$$, 'SB323', 'a change waits until it has begun'
);
SELECT billing_test.refuses($$SELECT billing_api.pause_subscription(64, p_as_of => '2027-04-21Z')$$, 'SB323', 'so does a pause');
SELECT is(billing_worker.renew_due(10, '2027-05-01Z'), 0, 'at the boundary nothing is due any more');
SELECT is(
    (SELECT array_agg(billing_api.has_access(64, NULL, x.at) ORDER BY x.at)
    FROM unnest('{2027-04-21Z,2027-05-01Z,2027-05-31Z}'::timestamptz[]) AS x (at)),
    '{t,t,t}', 'access goes on throughout'
);
SELECT is(s.current_period_start, '2027-06-01Z'::timestamptz, 'once it has begun, the next can be renewed')
FROM billing_api.renew_now(64, p_as_of => '2027-05-01Z') AS s;

-- A pause at the end is one at the end of what was opened.
SELECT billing_test.paid('pause', 'BASIC', '2027-04-01Z');
SELECT billing_api.renew_now(128, p_as_of => '2027-04-20Z');
SELECT billing_test.collect(p_as_of => '2027-04-20Z');
SELECT billing_api.pause_subscription(128, true, p_as_of => '2027-04-21Z');
SELECT billing_worker.renew_due(100, '2027-06-01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(128)',
    $$VALUES ('BILLED 2027-04-01 to 2027-05-01'), ('BILLED 2027-05-01 to 2027-06-01'), ('PAUSED 2027-06-01 to ...')$$,
    'a pause at the end of the period begins after what was paid ahead'
);

-- Cancelled now: what was paid ahead goes, and comes back whole, with the rest of the period that runs.
SELECT billing_test.paid('cancel', 'BASIC', '2027-04-01Z'), billing_test.paid('unpaid', 'BASIC', '2027-04-01Z');
SELECT billing_api.renew_now(192, p_as_of => '2027-04-16Z');
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT billing_api.renew_now(256, p_as_of => '2027-04-16Z');
SELECT billing_api.cancel_subscription(x.no, p_unused_time => 'CREDIT', p_as_of => '2027-04-21Z')
FROM unnest('{192, 256}'::bigint[]) AS x (no);
SELECT results_eq(
    $$SELECT x.no, billing_test.credit_of(x.no) FROM unnest('{192, 256}'::bigint[]) AS x (no)$$,
    $$VALUES (192::bigint, 4000::bigint), (256, 1000)$$, 'ten days of April and all of May come back, as far as they were paid'
);
SELECT results_eq(
    'SELECT e.amount FROM billing.credit_entry AS e INNER JOIN billing.subscription AS s USING (customer_id)
     WHERE s.subscription_id = 192 ORDER BY e.entry_seq',
    'VALUES (1000::bigint), (3000)', 'an entry for each invoice'
);
SELECT results_eq(
    $$SELECT s.status, s.ended_at, s.current_period_end FROM billing_api.subscription AS s WHERE s.subscription_id = 192$$,
    $$VALUES ('CANCELED', '2027-04-21Z'::timestamptz, '2027-04-21Z'::timestamptz)$$, 'it ends where the call is'
);
SELECT results_eq('SELECT * FROM billing_test.periods_of(192)', $$VALUES ('BILLED 2027-04-01 to 2027-04-21')$$, 'and so does its timeline');
SELECT results_eq(
    $$SELECT i.invoice FROM billing_test.invoices_of(256) AS i$$, $$VALUES ('INITIAL PAID 3000 paid'), ('RENEWAL VOID 3000 due')$$,
    'what was not paid is void'
);

-- Cancelled at the end of the period: of the one that was opened.
SELECT billing_test.paid('at end', 'BASIC', '2027-04-01Z');
SELECT billing_api.renew_now(320, p_as_of => '2027-04-16Z');
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT is(s.current_period_end, '2027-06-01Z'::timestamptz, 'a cancellation at period end leaves what was paid ahead')
FROM billing_api.cancel_subscription(320, true, p_as_of => '2027-04-17Z') AS s;

-- What was chosen for the boundary takes effect with it; lines that wait stand on it.
SELECT billing_test.paid('chosen', 'BASIC', '2027-04-01Z'), billing_test.paid('lines', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(384, 'ANNUAL', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-10Z');
SELECT is(s.plan_code || ' ' || s.current_period_end::date, 'ANNUAL 2028-05-01', 'what was chosen for the boundary takes effect with it')
FROM billing_api.renew_now(384, p_as_of => '2027-04-16Z') AS s;
SELECT billing_api.change_plan(448, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_api.renew_now(448, p_as_of => '2027-04-21Z');
SELECT is(
    (SELECT i.lines
    FROM billing_test.invoices_of(448) AS i WHERE i.invoice LIKE 'RENEWAL%'), 'PERIOD 9000, PRORATION -1500, PRORATION 4500',
    'and lines that wait stand on its invoice'
);
-- Not paid: 5 of 30 days of PRO are 1500, of which 3000 are owed still. Paid: 1500 and all of May.
SELECT billing_test.paid('lines paid', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(512, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_api.renew_now(512, p_as_of => '2027-04-21Z');
SELECT billing_test.start('2027-04-21Z');
SELECT billing_test.report(a.attempt_id, 'SUCCEEDED', '2027-04-21Z', p_payment_id => 'paid ahead')
FROM billing.payment_attempt AS a
INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
WHERE i.subscription_id = 512 AND i.kind = 'RENEWAL';
SELECT billing_api.cancel_subscription(x.no, p_unused_time => 'CREDIT', p_as_of => '2027-04-26Z')
FROM unnest('{448, 512}'::bigint[]) AS x (no);
SELECT results_eq(
    $$SELECT x.no, billing_test.credit_of(x.no) FROM unnest('{448, 512}'::bigint[]) AS x (no)$$,
    $$VALUES (448::bigint, 0::bigint), (512, 10500)$$, 'they count for the period that they are about, once they are paid'
);

-- Where there is no next period.
SELECT billing_test.paid('term', 'BASIC', '2027-04-01Z', p_term_periods => 1), billing_test.paid('flag', 'BASIC', '2027-04-01Z'),
    billing_test.paid('pauses', 'BASIC', '2027-04-01Z'), billing_test.paid('paused', 'BASIC', '2027-04-01Z');
SELECT billing_api.cancel_subscription(640, true, p_as_of => '2027-04-10Z');
SELECT billing_api.pause_subscription(704, true, p_as_of => '2027-04-10Z');
SELECT billing_api.pause_subscription(768, p_as_of => '2027-04-10Z');
SELECT billing_test.refuses(
    format('SELECT billing_api.renew_now(%s, p_as_of => ''2027-04-20Z'')', x.no), 'SB303', 'there is no next period: ' || x.why
)
FROM (VALUES (576, 'the term ends'), (640, 'it was cancelled'), (704, 'it will pause'), (768, 'it is paused')) AS x (no, why);
SELECT billing_test.customer('trial');
SELECT billing_api.create_subscription(c.customer_id, 'BASIC', 'k', p_trial_days => 14, p_as_of => '2027-04-01Z')
FROM billing.customer AS c WHERE c.external_ref = 'trial';
SELECT billing_test.refuses($$SELECT billing_api.renew_now(832, p_as_of => '2027-04-02Z')$$, 'SB303', 'a trial is not renewed early');
SELECT billing_test.refuses($$SELECT billing_api.renew_now(192, p_as_of => '2027-04-22Z')$$, 'SB302', 'nor what has ended');
SELECT billing_test.refuses(
    $$SELECT billing_api.renew_now(64, p_expected_version => 1, p_as_of => '2027-06-02Z')$$, 'SB304', 'another version'
);

-- A07: a run before the boundary bills nothing; the early renewal bills the period that follows, once.
SELECT billing_test.paid('a07', 'BASIC', '2027-08-01Z');
SELECT billing_worker.renew_due(100, '2027-08-21Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(896)', $$VALUES ('BILLED 2027-08-01 to 2027-09-01')$$, 'A07: before its boundary it is not due'
);
SELECT billing_api.renew_now(896, p_as_of => '2027-08-21Z');
SELECT billing_worker.renew_due(100, '2027-08-21Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(896)', $$VALUES ('BILLED 2027-08-01 to 2027-09-01'), ('BILLED 2027-09-01 to 2027-10-01')$$,
    'A07: on demand the next period is billed, and none twice'
);
SELECT results_eq(
    'SELECT i.invoice FROM billing_test.invoices_of(896) AS i', $$VALUES ('INITIAL PAID 3000 paid'), ('RENEWAL OPEN 3000 due')$$,
    'A07: by one invoice of 3000'
);

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
