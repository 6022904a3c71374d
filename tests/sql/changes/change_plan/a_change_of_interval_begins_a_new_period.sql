-- C21, and what a change of interval means for calendar, trial, fixed term and lines that wait.
BEGIN;
SELECT plan(23);
SELECT billing_test.plans();
SELECT billing_api.create_plan('WEEK', 'Week', 700, 'USD', 'WEEK', p_as_of => '2026-01-01Z');
SELECT billing_api.create_plan('THIRTY', 'Thirty days', 3000, 'USD', 'DAY', 30, p_as_of => '2026-01-01Z');
SELECT billing_api.create_plan('TWELVE', 'Twelve months', 36000, 'USD', 'MONTH', 12, p_as_of => '2026-01-01Z');

-- C21: half of April back, a year to pay.
SELECT billing_test.paid('c21', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(64, 'ANNUAL', p_as_of => '2027-04-16Z');
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(64)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('CHANGE PAID 34500 paid', 'PRORATION -1500, PERIOD 36000')$$,
    'C21: 34500 for the year'
);
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(64)', $$VALUES ('BILLED 2027-04-01 to 2027-04-16'), ('BILLED 2027-04-16 to 2028-04-16')$$,
    'C21: the month ends there, and the year begins'
);
SELECT is(billing_worker.renew_due(10, '2027-05-31Z'), 0, 'C21: in May nothing is due');
SELECT billing_worker.renew_due(10, '2028-04-16Z');
SELECT is(s.current_period_end, '2029-04-16Z'::timestamptz, 'C21: the next year follows from the new anchor')
FROM billing_api.subscription AS s WHERE s.subscription_id = 64;

-- Twelve months are a year; thirty days are no month.
SELECT billing_test.paid('twelve', 'ANNUAL', '2027-01-01Z');
SELECT billing_api.change_plan(128, 'TWELVE', p_as_of => '2027-07-02Z');
SELECT is(s.current_period_end, '2028-01-01Z'::timestamptz, 'twelve months are the interval of a year: the period stays')
FROM billing_api.subscription AS s WHERE s.subscription_id = 128;
SELECT billing_test.paid('thirty', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(192, 'THIRTY', p_as_of => '2027-04-16Z');
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT is(s.current_period_end, '2027-05-16Z'::timestamptz, 'thirty days are another interval than a month')
FROM billing_api.subscription AS s WHERE s.subscription_id = 192;

-- Billed on the 1st: the year begins where the change is, and the calendar is left.
SELECT billing_test.paid('calendar', 'BASIC', '2027-03-20Z', p_anchor_day => 1);
SELECT billing_api.change_plan(256, 'ANNUAL', p_as_of => '2027-03-26Z');
SELECT billing_test.collect(p_as_of => '2027-03-26Z');
SELECT results_eq(
    $$SELECT s.anchor_day, s.current_period_start, s.current_period_end FROM billing_api.subscription AS s WHERE s.subscription_id = 256$$,
    $$VALUES (NULL::smallint, '2027-03-26Z'::timestamptz, '2028-03-26Z'::timestamptz)$$,
    'a full year, also where billing followed the calendar'
);
-- 12 of 31 days of a stub of March were paid (1161), 6 are left: 580.
SELECT is(
    (SELECT i.lines FROM billing_test.invoices_of(256) AS i WHERE i.invoice LIKE 'CHANGE%'), 'PRORATION -580, PERIOD 36000',
    'and of the stub what is left comes back'
);

-- At the end of the period: nothing is prorated.
SELECT billing_test.paid('later', 'BASIC', '2027-01-31Z');
SELECT billing_api.change_plan(320, 'ANNUAL', p_timing => 'AT_PERIOD_END', p_as_of => '2027-02-10Z');
SELECT billing_worker.renew_due(10, '2027-02-28Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(320)', $$VALUES ('BILLED 2027-01-31 to 2027-02-28'), ('BILLED 2027-02-28 to 2028-02-28')$$,
    'the year is counted from the boundary at which it begins'
);
SELECT is(
    (SELECT i.lines FROM billing_test.invoices_of(320) AS i WHERE i.invoice LIKE 'RENEWAL%'), 'PERIOD 36000', 'by one full line'
);

-- In a trial only what follows it changes; calendar billing is for months and years.
SELECT billing_test.customer('trial');
SELECT billing_api.create_subscription(c.customer_id, 'BASIC', 'k', p_trial_days => 14, p_anchor_day => 1, p_as_of => '2027-04-01Z')
FROM billing.customer AS c WHERE c.external_ref = 'trial';
SELECT is(s.anchor_day, 1::smallint, 'a year follows the calendar as well')
FROM billing_api.change_plan(384, 'ANNUAL', p_as_of => '2027-04-05Z') AS s;
SELECT is(s.anchor_day, NULL, 'weeks do not') FROM billing_api.change_plan(384, 'WEEK', p_as_of => '2027-04-06Z') AS s;
SELECT billing_worker.renew_due(10, '2027-04-15Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(384)', $$VALUES ('TRIAL 2027-04-01 to 2027-04-15'), ('BILLED 2027-04-15 to 2027-04-22')$$,
    'the first week begins with the end of the trial'
);

-- A fixed term is never cut short: it ends with the first new period that reaches its end.
SELECT billing_test.paid('term', 'BASIC', '2027-04-01Z', p_term_periods => 3);
SELECT is(s.term_end_at, '2027-07-01Z'::timestamptz, 'three months end on 1 July')
FROM billing_api.subscription AS s WHERE s.subscription_id = 448;
SELECT billing_api.change_plan(448, 'WEEK', p_as_of => '2027-04-16Z');
SELECT is(s.term_end_at, '2027-07-02Z'::timestamptz, 'in weeks from 16 April that is 2 July, eleven weeks on')
FROM billing_api.subscription AS s WHERE s.subscription_id = 448;
SELECT ok(billing_api.has_access(s.customer_id, NULL, '2027-07-01 12:00Z'), 'and access lasts until then')
FROM billing.subscription AS s WHERE s.subscription_id = 448;
SELECT billing_test.paid('month to year', 'BASIC', '2027-04-01Z', p_term_periods => 1);
SELECT billing_api.change_plan(512, 'ANNUAL', p_as_of => '2027-04-16Z');
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT is(s.term_end_at, '2028-04-16Z'::timestamptz, 'one month that becomes a year ends with that year')
FROM billing_api.subscription AS s WHERE s.subscription_id = 512;
SELECT billing_test.paid('term at end', 'BASIC', '2027-04-01Z', p_term_periods => 3);
SELECT billing_api.change_plan(576, 'ANNUAL', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-16Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT is(s.term_end_at, '2028-05-01Z'::timestamptz, 'also where it begins at a boundary')
FROM billing_api.subscription AS s WHERE s.subscription_id = 576;
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(512, 'BASIC', p_timing => 'AT_PERIOD_END', p_as_of => '2027-05-01Z')$$, 'SB303',
    'in its last period nothing can be changed for the next'
);

-- Lines that wait come along.
SELECT billing_test.paid('waiting', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(640, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_api.change_plan(640, 'ANNUAL', p_as_of => '2027-04-21Z');
SELECT billing_test.collect(p_as_of => '2027-04-21Z');
-- 10 of 30 days of PRO back; the difference of 15 days is due now: 3000 - 3000 + 36000.
SELECT is(
    (SELECT i.lines FROM billing_test.invoices_of(640) AS i WHERE i.invoice LIKE 'CHANGE%'),
    'PRORATION -3000, PERIOD 36000, PRORATION -1500, PRORATION 4500', 'what waits for the next invoice stands on it'
);

-- It is void before it is paid: they wait again.
SELECT billing_test.paid('void', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(704, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_api.change_plan(704, 'ANNUAL', p_as_of => '2027-04-21Z');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-04-21Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT is(
    (SELECT i.lines FROM billing_test.invoices_of(704) AS i WHERE i.invoice LIKE 'RENEWAL%'),
    'PERIOD 9000, PRORATION -1500, PRORATION 4500', 'when a change is void, the lines that it had taken up wait again'
);

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
