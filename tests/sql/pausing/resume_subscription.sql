-- P01, P03, and what a pause does to anchor, calendar, fixed term and money.
BEGIN;
SELECT plan(27);
SELECT billing_test.plans();

-- P01: ten days are left, and are used up after it.
SELECT billing_test.paid('p01', 'BASIC', '2027-04-01Z');
SELECT billing_api.pause_subscription(64, p_as_of => '2027-04-21Z');
SELECT is(billing_worker.renew_due(10, '2027-05-24Z'), 0, 'P01: nothing is due in between');
SELECT results_eq(
    $$SELECT s.status, s.current_period_start, s.current_period_end
      FROM billing_api.resume_subscription(64, p_as_of => '2027-05-25Z') AS s$$,
    $$VALUES ('ACTIVE', '2027-05-25Z'::timestamptz, '2027-06-04Z'::timestamptz)$$, 'P01: the ten days that were left follow'
);
SELECT results_eq(
    'SELECT p.kind, p.invoice_id FROM billing.subscription_period AS p WHERE p.subscription_id = 64 ORDER BY p.period_start',
    $$VALUES ('BILLED', 64::bigint), ('PAUSED', NULL), ('BILLED', 64)$$, 'P01: paid by the invoice of the whole period'
);
SELECT is(
    (SELECT array_agg(billing_api.has_access(64, NULL, x.at) ORDER BY x.at)
     FROM unnest('{2027-04-20Z,2027-05-24Z,2027-05-25Z,2027-06-03 23:59:59Z}'::timestamptz[]) AS x (at)),
    '{t,f,t,t}', 'P01: with access in both parts, and none between'
);
SELECT billing_worker.renew_due(10, '2027-06-04Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(64)', $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('RENEWAL OPEN 3000 due',
    'PERIOD 3000')$$,
    'P01: then 3000, the first invoice since'
);
SELECT is(s.current_period_end, '2027-07-04Z'::timestamptz, 'P01: by the new anchor')
FROM billing_api.subscription AS s WHERE s.subscription_id = 64;
SELECT billing_test.collect(p_as_of => '2027-06-04Z');
SELECT is(
    billing_test.published(64),
    'SubscriptionCreated InvoiceOpened InvoicePaid SubscriptionActivated SubscriptionPaused SubscriptionResumed InvoiceOpened InvoicePaid '
    || 'SubscriptionRenewed', 'P01: the world is told of both ends of a pause'
);

-- Changes and cancellations in what was left are still part of the full period: 5 of 30 days.
SELECT billing_test.paid('change', 'BASIC', '2027-04-01Z');
SELECT billing_api.pause_subscription(128, p_as_of => '2027-04-21Z');
SELECT billing_api.resume_subscription(128, p_as_of => '2027-05-25Z');
SELECT billing_api.change_plan(128, 'PRO', p_as_of => '2027-05-30Z');
SELECT is(
    (SELECT i.lines FROM billing_test.invoices_of(128) AS i WHERE i.invoice LIKE 'CHANGE%'), 'PRORATION -500, PRORATION 1500',
    'a change in what was left is a part of the full period'
);
SELECT billing_test.collect(p_as_of => '2027-05-30Z');
SELECT billing_api.pause_subscription(128, p_as_of => '2027-05-31Z');
SELECT billing_api.resume_subscription(128, p_as_of => '2027-06-10Z');
SELECT is(s.current_period_end, '2027-06-14Z'::timestamptz, 'a second pause moves it again')
FROM billing_api.subscription AS s WHERE s.subscription_id = 128;
SELECT billing_api.cancel_subscription(128, p_unused_time => 'CREDIT', p_as_of => '2027-06-12Z');
SELECT is(billing_test.credit_of(128), 600::bigint, 'two of thirty days of the new plan come back');

-- P03: before it begins.
SELECT billing_test.paid('p03', 'BASIC', '2027-04-01Z');
SELECT billing_api.pause_subscription(192, true, p_as_of => '2027-04-10Z');
SELECT results_eq(
    $$SELECT s.status, s.pause_at_period_end FROM billing_api.resume_subscription(192, p_as_of => '2027-04-20Z') AS s$$,
    $$VALUES ('ACTIVE', false)$$, 'P03: the flag is taken back'
);
SELECT billing_test.refuses($$SELECT billing_api.resume_subscription(192, p_as_of => '2027-04-20Z')$$, 'SB303', 'P03: once');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT is(i.invoice, 'RENEWAL OPEN 3000 due', 'P03: May is billed') FROM billing_test.invoices_of(192) AS i WHERE i.invoice LIKE 'RENEWAL%';

-- At the boundary itself the flag still comes off in time; after it the pause comes first.
SELECT billing_test.paid('boundary', 'BASIC', '2027-04-01Z'), billing_test.paid('after', 'BASIC', '2027-04-01Z');
SELECT billing_api.pause_subscription(x.no, true, p_as_of => '2027-04-10Z') FROM unnest('{256, 320}'::bigint[]) AS x (no);
SELECT billing_api.resume_subscription(256, p_as_of => '2027-05-01Z');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(256)', $$VALUES ('BILLED 2027-04-01 to 2027-05-01'), ('BILLED 2027-05-01 to 2027-06-01')$$,
    'at the boundary it does not pause at all'
);
SELECT billing_api.resume_subscription(320, p_as_of => '2027-05-08Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(320)',
    $$VALUES ('BILLED 2027-04-01 to 2027-05-01'), ('PAUSED 2027-05-01 to 2027-05-08'), ('BILLED 2027-05-08 to 2027-06-08')$$,
    'a week later it was paused for a week, and the next period begins'
);
SELECT results_eq(
    $$SELECT i.kind, i.period_start, i.total FROM billing_api.invoice AS i WHERE i.subscription_id = 320 AND i.kind = 'RENEWAL'$$,
    $$VALUES ('RENEWAL', '2027-05-08Z'::timestamptz, 3000::bigint)$$, 'with an invoice from there, at once'
);

-- A pause of no length moves nothing, in the middle, at the start and at the end of a period.
SELECT billing_test.paid('short', 'BASIC', '2027-01-31Z', p_anchor_day => 31);
SELECT billing_worker.renew_due(10, '2027-02-28Z');
SELECT billing_test.collect(p_as_of => '2027-02-28Z');
SELECT billing_api.pause_subscription(384, p_as_of => x.at), billing_api.resume_subscription(384, p_as_of => x.at)
FROM (VALUES ('2027-02-28Z'::timestamptz), ('2027-03-15Z'), ('2027-03-31Z')) AS x (at) ORDER BY x.at;
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(384)',
    $$VALUES ('BILLED 2027-01-31 to 2027-02-28'), ('BILLED 2027-02-28 to 2027-03-31'), ('BILLED 2027-03-31 to 2027-04-30')$$,
    'it leaves no row, and the calendar as it was'
);
SELECT is(s.anchor_day, 31::smallint, 'the day of the month included') FROM billing_api.subscription AS s WHERE s.subscription_id = 384;

-- A longer one gives up the calendar.
SELECT billing_test.paid('calendar', 'BASIC', '2027-04-01Z', p_anchor_day => 1);
SELECT billing_api.pause_subscription(448, p_as_of => '2027-04-21Z');
SELECT billing_api.resume_subscription(448, p_as_of => '2027-04-25Z');
SELECT billing_worker.renew_due(100, '2027-05-05Z');
SELECT results_eq(
    $$SELECT s.anchor_day, s.current_period_start, s.current_period_end FROM billing_api.subscription AS s WHERE s.subscription_id = 448$$,
    $$VALUES (NULL::smallint, '2027-05-05Z'::timestamptz, '2027-06-05Z'::timestamptz)$$, 'a pause of four days moves billing to the 5th'
);

-- A fixed term keeps its number of periods.
SELECT billing_test.paid('term', 'BASIC', '2027-01-31Z', p_term_periods => 3);
SELECT billing_api.pause_subscription(512, p_as_of => '2027-02-10Z');
SELECT is(s.term_end_at, '2027-05-20Z'::timestamptz, 'of three months that began on 31 January two follow after 20 March')
FROM billing_api.resume_subscription(512, p_as_of => '2027-03-02Z') AS s;
SELECT billing_worker.renew_due(100, '2027-03-20Z');
SELECT billing_test.collect(p_as_of => '2027-03-20Z');
SELECT billing_worker.renew_due(100, '2027-04-20Z');
SELECT billing_test.collect(p_as_of => '2027-04-20Z');
SELECT billing_worker.renew_due(100, '2027-06-01Z');
SELECT results_eq(
    $$SELECT s.status, s.ended_at, (SELECT count(*) FROM billing_api.invoice AS i WHERE i.subscription_id = 512)
      FROM billing_api.subscription AS s WHERE s.subscription_id = 512$$,
    $$VALUES ('EXPIRED', '2027-05-20Z'::timestamptz, 3::bigint)$$, 'and it expires after three, without a fourth charge'
);

-- Paused at the end of the last period of a term.
SELECT billing_test.paid('last', 'BASIC', '2027-04-01Z', p_term_periods => 1);
SELECT billing_api.pause_subscription(576, true, p_as_of => '2027-04-10Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT is(s.status, 'EXPIRED', 'the end of a term beats a pause') FROM billing_api.subscription AS s WHERE s.subscription_id = 576;

-- Across the hour that a clock repeats: seconds are kept, not clock times.
SELECT billing_test.paid('dst', 'BASIC', '2027-10-20 04:00Z', p_time_zone => 'America/New_York');
SELECT billing_api.pause_subscription(640, p_as_of => '2027-10-21 05:30Z');
SELECT is(s.current_period_end - s.current_period_start, interval '29 days 23 hours 30 minutes', 'what was left is counted in seconds')
FROM billing_api.resume_subscription(640, p_as_of => '2027-10-08 06:00Z'::timestamptz + interval '24 days') AS s;
SELECT billing_test.paid('repeated', 'BASIC', '2027-10-07 04:00Z', p_time_zone => 'America/New_York');
SELECT billing_api.pause_subscription(704, p_as_of => '2027-10-31 04:00Z');
-- Seven days are left; they end at 01:30 daylight time on 7 November, which the clock shows twice.
SELECT is(s.current_period_end, '2027-11-07 05:30Z'::timestamptz, 'it may end within the hour that is repeated')
FROM billing_api.resume_subscription(704, p_as_of => '2027-10-31 05:30Z') AS s;
SELECT billing_worker.renew_due(100, '2027-11-07 05:30Z');
SELECT results_eq(
    $$SELECT i.period_start, i.period_end, i.total FROM billing_api.invoice AS i WHERE i.subscription_id = 704 AND i.kind = 'RENEWAL'$$,
    $$VALUES ('2027-11-07 05:30Z'::timestamptz, '2027-12-07 06:30Z'::timestamptz, 3000::bigint)$$, 'and is followed by a full month'
);

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
