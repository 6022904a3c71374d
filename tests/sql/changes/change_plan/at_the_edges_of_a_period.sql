-- C04, C14 and both instants of C26, one after the other: at the very start of a period, in its last seconds, at its end,
-- and just after the next one has begun.
BEGIN;
SELECT plan(31);
SELECT billing_test.plans();

-- C04: at the very instant of creation, and a second later.
SELECT billing_test.paid('c04 a', 'FREE', '2027-04-01Z'), billing_test.paid('c04 b', 'FREE', '2027-04-01Z');
SELECT billing_api.change_plan(64, 'BASIC', p_as_of => '2027-04-01Z');
SELECT billing_api.change_plan(128, 'BASIC', p_as_of => '2027-04-01 00:00:01Z');
SELECT billing_test.collect(p_as_of => '2027-04-01 00:00:01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(64)',
    $$VALUES ('INITIAL PAID ', 'PERIOD 0'), ('CHANGE PAID 3000 paid', 'PERIOD 3000')$$,
    'C04: at the start it is the full price, by one line'
);
SELECT results_eq(
    $$SELECT l.period_start, l.period_end FROM billing_api.invoice_line AS l INNER JOIN billing_api.invoice AS i USING (invoice_id)
      WHERE i.subscription_id = 64 AND i.kind = 'CHANGE'$$,
    $$VALUES ('2027-04-01Z'::timestamptz, '2027-05-01Z'::timestamptz)$$, 'C04: for all of the period'
);
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(128)',
    $$VALUES ('INITIAL PAID ', 'PERIOD 0'), ('CHANGE PAID 2999 paid', 'PRORATION 2999')$$, 'C04: a second later it is a unit less'
);
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(64)', $$VALUES ('BILLED 2027-04-01 to 2027-05-01')$$, 'C04: and no period of no length'
);

-- C14: ten minutes before the end nothing is left of BASIC (0.69), and 2.08 of PRO, which no gateway takes.
SELECT billing_ops.set_gateway_minimum('sim', 'USD', 50);
SELECT billing_test.paid('c14', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(192, 'PRO', p_as_of => '2027-04-30 23:50Z');
SELECT is(billing_test.collect(p_as_of => '2027-04-30 23:50Z'), 0, 'C14: no gateway is called for 2 cents');
SELECT is(s.plan_code, 'PRO', 'C14: the upgrade takes effect') FROM billing_api.subscription AS s WHERE s.subscription_id = 192;
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(192)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('CHANGE PAID 2 carried', 'PRORATION 2'),
             ('RENEWAL OPEN 9002 due', 'PERIOD 9000, CARRIED 2')$$,
    'C14: they stand on the next invoice'
);
-- What was carried is not paid until that invoice is; 9000 x 30 of 31 days.
SELECT billing_test.collect(p_as_of => '2027-05-01Z');
SELECT billing_api.cancel_subscription(192, p_unused_time => 'CREDIT', p_as_of => '2027-05-02Z');
SELECT is(billing_test.credit_of(192), 8709::bigint, 'C14: and is nothing that May was paid with');

-- C26, a second before the end: both sides come to nothing, and May is the new price.
SELECT billing_test.paid('c26 before', 'BASIC', '2027-04-01Z');
SELECT is(s.plan_code, 'PRO', 'C26: in the last second a change costs nothing and is done at once')
FROM billing_api.change_plan(256, 'PRO', p_as_of => '2027-04-30 23:59:59Z') AS s;
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(256)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('CHANGE PAID ', NULL), ('RENEWAL OPEN 9000 due', 'PERIOD 9000')$$,
    'C26: the one renewal of May is 9000'
);

-- At the very end the change comes before the boundary.
SELECT billing_test.paid('c26 at', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(320, 'PRO', p_as_of => '2027-05-01Z');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(320)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('CHANGE PAID ', NULL), ('RENEWAL OPEN 9000 due', 'PERIOD 9000')$$,
    'C26: at the end itself too'
);

-- The renewal came first: the new period is replaced as a whole, once it is paid.
SELECT billing_test.paid('c26 after', 'BASIC', '2027-04-01Z');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(384, 'PRO', p_as_of => '2027-05-01Z')$$, 'SB320', 'C26: while May is owed it cannot be changed'
);
SELECT billing_test.collect(p_as_of => '2027-05-01Z');
SELECT billing_api.change_plan(384, 'PRO', p_as_of => '2027-05-01Z');
SELECT billing_test.collect(p_as_of => '2027-05-01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(384)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('RENEWAL PAID 3000 paid', 'PERIOD 3000'),
             ('CHANGE PAID 6000 paid', 'PRORATION -3000, PERIOD 9000')$$,
    'C26: then May comes to 9000 in two invoices'
);

-- A call from the second before, which finds the boundary done, acts at the boundary; one from six minutes before cannot.
SELECT billing_test.paid('leeway', 'BASIC', '2027-04-01Z');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT billing_test.collect(p_as_of => '2027-05-01Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(448, 'PRO', p_as_of => '2027-04-30 23:54:59Z')$$, 'SB323',
    'six minutes before a period that has been opened it cannot be changed'
);
SELECT billing_api.change_plan(448, 'PRO', p_as_of => '2027-04-30 23:59:59Z');
SELECT is(
    (SELECT i.period_start FROM billing_api.invoice AS i WHERE i.subscription_id = 448 AND i.kind = 'CHANGE'),
    '2027-05-01Z'::timestamptz, 'a call from just before a boundary that is done acts at the boundary'
);

-- What is overdue is renewed first, up to but not including the instant of the call, at the old price.
SELECT billing_test.paid('overdue', 'BASIC', '2027-04-01Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(512, 'PRO', p_as_of => '2027-06-16Z')$$, 'SB320',
    'what is overdue is billed first, and then owed; a call that is refused leaves it to the next run'
);
SELECT billing_api.grant_credit(s.customer_id, 6000, 'USD', 'gift', 'gift', p_as_of => '2027-06-15Z')
FROM billing.subscription AS s WHERE s.subscription_id = 512;
SELECT billing_api.change_plan(512, 'PRO', p_as_of => '2027-06-16Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(512)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('RENEWAL PAID 3000 by credit', 'PERIOD 3000'),
             ('RENEWAL PAID 3000 by credit', 'PERIOD 3000'), ('CHANGE OPEN 3000 due', 'PRORATION -1500, PRORATION 4500')$$,
    'each missed period has its own invoice at the old price, and the change is of the one that runs'
);

-- Another interval at the very start of a period: its invoice has opened it, and the new one replaces what it bills.
SELECT billing_test.paid('year at start', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(576, 'ANNUAL', p_as_of => '2027-04-01Z');
SELECT billing_test.collect(p_as_of => '2027-04-01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(576)', $$VALUES ('BILLED 2027-04-01 to 2028-04-01')$$, 'the month is replaced by the year'
);
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(576)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('CHANGE PAID 33000 paid', 'PRORATION -3000, PERIOD 36000')$$,
    'all of the month is credited'
);
SELECT billing_api.change_plan(576, 'PRO', p_as_of => '2027-04-01Z');
SELECT is(
    billing_test.credit_of(576), 27000::bigint, 'and again at the same instant: 36000 back, 9000 to pay'
);
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(576)', $$VALUES ('BILLED 2027-04-01 to 2027-05-01')$$, 'with one period'
);

-- Another interval at the very end is part of the renewal that is due.
SELECT billing_test.paid('year at end', 'BASIC', '2027-04-01Z');
SELECT is(s.plan_code || ' ' || s.current_period_end::date, 'ANNUAL 2028-05-01', 'at the very end the year begins')
FROM billing_api.change_plan(640, 'ANNUAL', p_as_of => '2027-05-01Z') AS s;
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(640)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('RENEWAL OPEN 36000 due', 'PERIOD 36000')$$, 'billed by the renewal itself'
);
SELECT is(s.next_renewal_at, '2028-05-01Z'::timestamptz, 'nothing is due before the next year')
FROM billing_api.subscription AS s WHERE s.subscription_id = 640;
SELECT is(
    billing_test.log_of(640),
    'SubscriptionCreated InvoiceOpened InvoicePaid SubscriptionActivated SubscriptionChangeScheduled SubscriptionPlanChanged',
    'the log tells how'
);

-- A renewal that is parked, and overdue, cannot be changed: what has passed would be billed on the new terms.
SELECT billing_test.paid('parked', 'BASIC', '2027-04-01Z');
SELECT billing.park_subscription(ROW(s.customer_id, s.subscription_id)::billing.subscription_key, '22003', 'odd', '2027-05-01Z')
FROM billing.subscription AS s WHERE s.subscription_id = 704;
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(704, 'PRO', p_as_of => '2027-05-02Z')$$, 'SB303', 'a parked renewal comes before any change'
);
SELECT is(s.plan_code || ' then ' || s.pending_plan_code, 'BASIC then PRO', 'before it was due a change would have been possible')
FROM billing_api.change_plan(704, 'PRO', p_as_of => '2027-04-16Z') AS s;
SELECT billing_api.undo_change(704, p_as_of => '2027-04-16Z');

-- In a stub of calendar billing all is part of the full month: 15 of 30 days were priced, 10 are left.
SELECT billing_test.paid('stub', 'BASIC', '2027-04-16Z', p_anchor_day => 1);
SELECT billing_api.change_plan(768, 'PRO', p_as_of => '2027-04-21Z');
SELECT is(
    (SELECT max(i.lines) FROM billing_test.invoices_of(768) AS i WHERE i.invoice LIKE 'CHANGE%'), 'PRORATION -1000, PRORATION 3000',
    'a stub is prorated by the full period that was priced'
);
-- A stub of a free plan says nothing in money, and still how long the full month is.
SELECT billing_test.customer('free stub');
SELECT billing_api.create_subscription(c.customer_id, 'FREE', 'k', p_trial_days => 14, p_anchor_day => 1, p_as_of => '2027-04-02Z')
FROM billing.customer AS c WHERE c.external_ref = 'free stub';
SELECT billing_worker.renew_due(10, '2027-04-16Z');
SELECT billing_api.change_plan(832, 'PRO', p_as_of => '2027-04-21Z');
SELECT is(
    (SELECT max(i.lines) FROM billing_test.invoices_of(832) AS i WHERE i.invoice LIKE 'CHANGE%'), 'PRORATION 3000',
    'also where the stub was free: 10 of 30 days'
);

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
