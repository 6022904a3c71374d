-- NEXT_INVOICE: the same lines as an immediate change, in effect at once, and on the next invoice, whichever that is.
BEGIN;
SELECT plan(17);
SELECT billing_test.plans();
SELECT billing_test.paid('up', 'BASIC', '2027-04-01Z'), billing_test.paid('down', 'PRO', '2027-04-01Z'),
    billing_test.paid('far down', 'ENTERPRISE', '2027-04-01Z');

SELECT is(s.plan_code, 'PRO', 'it takes effect at once')
FROM billing_api.change_plan(64, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z') AS s;
SELECT is((SELECT count(*) FROM billing_api.invoice AS i WHERE i.subscription_id = 64), 1::bigint, 'without an invoice');
SELECT billing_api.change_plan(128, 'BASIC', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-11Z');
SELECT billing_api.change_plan(192, 'BASIC', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-11Z');
SELECT is(billing_test.credit_of(128) + billing_test.credit_of(192), 0::bigint, 'and without credit');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT results_eq(
    $$SELECT i.*
      FROM generate_series(64, 192, 64) AS s (no) CROSS JOIN LATERAL billing_test.invoices_of(s.no) AS i WHERE i.invoice LIKE 'RENEWAL%'$$,
    $$VALUES ('RENEWAL OPEN 12000 due', 'PERIOD 9000, PRORATION -1500, PRORATION 4500'),
             ('RENEWAL PAID ', 'PERIOD 3000, PRORATION -6000, PRORATION 2000, CREDIT 1000'),
             ('RENEWAL PAID ', 'PERIOD 3000, PRORATION -10000, PRORATION 2000, CREDIT 5000')$$,
    'the renewal collects the difference, or credits what it exceeds the price by'
);
SELECT is(billing_test.credit_of(128), 1000::bigint, 'the rest is credit');
-- May was paid for with what came back from April.
SELECT billing_api.cancel_subscription(128, p_unused_time => 'CREDIT', p_as_of => '2027-05-16 12:00Z');
SELECT is(billing_test.credit_of(128), 2500::bigint, 'time that was paid for by the lines of another period is paid for');

-- Several changes in one period.
SELECT billing_test.paid('thrice', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(256, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-11Z');
SELECT billing_api.change_plan(256, 'ENTERPRISE', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
-- What is paid now takes up what waits, so that no more is credited than will have been paid: 10 days of each.
SELECT billing_api.change_plan(256, 'BASIC', p_as_of => '2027-04-21Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(256)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'),
             ('CHANGE OPEN 3000 due',
             'PRORATION -5000, PRORATION 1000, PRORATION -2000, PRORATION 6000, PRORATION -4500, PRORATION 7500')$$,
    'an immediate change is the next invoice: 1000 + 1500 + 2500 + 1000 were used, 3000 were paid'
);

-- A pause keeps them for the invoice after it.
SELECT billing_test.paid('pause', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(320, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_api.pause_subscription(320, p_as_of => '2027-04-21Z');
SELECT billing_api.resume_subscription(320, p_as_of => '2027-07-01Z');
SELECT billing_worker.renew_due(10, '2027-07-11Z');
SELECT is(
    (SELECT i.lines
    FROM billing_test.invoices_of(320) AS i WHERE i.invoice LIKE 'RENEWAL%'), 'PERIOD 9000, PRORATION -1500, PRORATION 4500',
    'after a pause they stand on the first invoice'
);

-- The invoice that took them up becomes void with the end: what was promised is kept.
SELECT billing_test.paid('promised', 'ENTERPRISE', '2027-04-01Z');
SELECT billing_api.change_plan(384, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-21Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT is(
    (SELECT i.lines FROM billing_test.invoices_of(384) AS i WHERE i.invoice LIKE 'RENEWAL OPEN 7000%'),
    'PERIOD 9000, PRORATION -5000, PRORATION 3000', 'May costs 2000 less'
);
SELECT billing_api.cancel_subscription(384, p_as_of => '2027-05-02Z');
SELECT is(billing_test.credit_of(384), 2000::bigint, 'and when May is void, the 2000 are credit');
SELECT billing_test.paid('owed', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(448, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT billing_api.cancel_subscription(448, p_as_of => '2027-05-02Z');
SELECT is(billing_test.credit_of(448), 0::bigint, 'what the customer owed is waived with it');

-- Forgiven by hand: its lines are forgiven with it.
SELECT billing_test.paid('forgiven', 'ENTERPRISE', '2027-04-01Z');
SELECT billing_api.change_plan(512, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-21Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT billing_api.void_invoice(i.invoice_id, p_as_of => '2027-05-02Z')
FROM billing_api.invoice AS i WHERE i.subscription_id = 512 AND i.status = 'OPEN';
SELECT billing_api.cancel_subscription(512, p_as_of => '2027-05-03Z');
SELECT is(billing_test.credit_of(512), 0::bigint, 'an invoice that is forgiven takes its lines along');

-- A new interval cannot wait for an invoice that would come with it.
SELECT billing_test.paid('interval', 'BASIC', '2027-04-01Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(576, 'ANNUAL', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z')$$, 'SB303',
    'a change of interval is billed with the period that it begins'
);

-- Two subscriptions of one customer in one batch: one overflows, the other draws.
SELECT billing_test.customer('two');
SELECT billing_api.create_subscription(c.customer_id, x.plan_code, x.plan_code, x.plan_code, p_as_of => '2027-08-01Z')
FROM billing.customer AS c CROSS JOIN (VALUES ('ENTERPRISE'), ('BASIC')) AS x (plan_code) WHERE c.external_ref = 'two';
SELECT billing_test.collect(p_as_of => '2027-08-01Z');
SELECT billing_api.change_plan(640, 'BASIC', p_timing => 'NEXT_INVOICE', p_as_of => '2027-08-02Z');
SELECT billing_api.grant_credit(s.customer_id, 1000, 'USD', 'gift', 'gift', p_as_of => '2027-08-02Z')
FROM billing.subscription AS s WHERE s.subscription_id = 640;
SELECT billing_worker.renew_due(100, '2027-09-01Z');
-- 30 of 31 days: 14516 back, 2903 to pay, so that September overflows by 8613; the other draws the 1000 that were there.
SELECT results_eq(
    $$SELECT i.invoice
      FROM generate_series(640, 704, 64) AS s (no) CROSS JOIN LATERAL billing_test.invoices_of(s.no) AS i WHERE i.invoice LIKE 'RENEWAL%'$$,
    $$VALUES ('RENEWAL PAID '), ('RENEWAL OPEN 2000 due + 1000 by credit')$$, 'credit that arises in a batch is not drawn in it'
);
SELECT is(billing_test.credit_of(640), 8613::bigint, 'and is there for the next');

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
