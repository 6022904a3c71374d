-- C02, C03, C07, C22 and what limits credit: never a negative charge, never more than was paid and not yet given back.
BEGIN;
SELECT plan(29);
SELECT billing_test.plans();

-- C02: 20 of 30 days are left.
SELECT billing_test.paid('c02', 'PRO', '2027-04-01Z');
SELECT is(s.plan_code, 'BASIC', 'C02: a downgrade takes effect at once')
FROM billing_api.change_plan(64, 'BASIC', p_as_of => '2027-04-11Z') AS s;
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(64)',
    $$VALUES ('INITIAL PAID 9000 paid', 'PERIOD 9000'), ('CHANGE PAID ', 'PRORATION -6000, PRORATION 2000, CREDIT 4000')$$,
    'C02: the invoice comes to nothing, by a line that balances it'
);
SELECT is(billing_test.credit_of(64), 4000::bigint, 'C02: the rest is credit');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT is(billing_test.collect(p_as_of => '2027-05-01Z'), 0, 'C02: May is paid by credit, without a call');
SELECT billing_worker.renew_due(10, '2027-06-01Z');
SELECT billing_test.collect(p_as_of => '2027-06-01Z');
SELECT results_eq(
    $$SELECT i.invoice FROM billing_test.invoices_of(64) AS i WHERE i.invoice LIKE 'RENEWAL%'$$,
    $$VALUES ('RENEWAL PAID 3000 by credit'), ('RENEWAL PAID 2000 paid + 1000 by credit')$$, 'C02: and a third of June'
);

-- C03: 10 days BASIC, 10 days PRO, 10 days BASIC come to 5000.
SELECT billing_test.paid('c03', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(128, 'PRO', p_as_of => '2027-04-11Z');
SELECT billing_test.collect(p_as_of => '2027-04-11Z');
SELECT billing_api.change_plan(128, 'BASIC', p_as_of => '2027-04-21Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(128)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('CHANGE PAID 4000 paid', 'PRORATION -2000, PRORATION 6000'),
             ('CHANGE PAID ', 'PRORATION -3000, PRORATION 1000, CREDIT 2000')$$,
    'C03: the second change credits PRO, not BASIC again'
);
SELECT is(
    (SELECT sum(i.amount_paid) - billing_test.credit_of(128) FROM billing_api.invoice AS i WHERE i.subscription_id = 128)::bigint,
    5000::bigint, 'C03: April comes to what was used'
);

-- C07: nothing is credited that was not paid, because a change waits until nothing is owed.
SELECT billing_test.paid('c07', 'PRO', '2027-03-01Z');
SELECT billing_worker.renew_due(10, '2027-04-01Z');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-04-01Z');
SELECT is(s.status, 'PAST_DUE', 'C07: April is owed') FROM billing_api.subscription AS s WHERE s.subscription_id = 192;
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(192, 'BASIC', p_as_of => '2027-04-16Z')$$, 'SB303', 'C07: while it is past due no change is immediate'
);
SELECT is(billing_test.credit_of(192), 0::bigint, 'C07: no credit comes of it');
SELECT is(s.pending_plan_code, 'BASIC', 'C07: at the end of the period it may change')
FROM billing_api.change_plan(192, 'BASIC', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-16Z') AS s;
SELECT billing_api.void_invoice(i.invoice_id, p_as_of => '2027-04-17Z')
FROM billing_api.invoice AS i WHERE i.subscription_id = 192 AND i.status = 'OPEN';
SELECT is(billing_test.credit_of(192), 0::bigint, 'C07: nor of forgiving the invoice');
-- Forgiven time was not paid for, so nothing of it comes back, and the new plan is charged in full for the rest.
SELECT billing_api.change_plan(192, 'ENTERPRISE', p_as_of => '2027-04-17Z');
SELECT is(
    (SELECT i.lines FROM billing_test.invoices_of(192) AS i WHERE i.invoice LIKE 'CHANGE%'), 'PRORATION 7000',
    'C07: 14 of 30 days of 15000, and no credit for what was forgiven'
);

-- C22: a year by mistake, and back five minutes later. 366 days, of which 300 seconds are used: 35999.66.
SELECT billing_test.paid('c22', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(256, 'ANNUAL', p_as_of => '2027-04-16Z');
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT billing_api.change_plan(256, 'BASIC', p_as_of => '2027-04-16 00:05Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(256)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('CHANGE PAID 34500 paid', 'PRORATION -1500, PERIOD 36000'),
             ('CHANGE PAID ', 'PRORATION -35999, PERIOD 3000, CREDIT 32999')$$,
    'C22: what was brought along from the month counts as paid for the year'
);
SELECT is(billing_test.credit_of(256), 32999::bigint, 'C22: 32999 are credit');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(256)',
    $$VALUES ('BILLED 2027-04-01 to 2027-04-16'), ('BILLED 2027-04-16 to 2027-04-16 00:05:00'),
             ('BILLED 2027-04-16 00:05:00 to 2027-05-16 00:05:00')$$,
    'C22: the new month begins there'
);
SELECT billing_api.cancel_subscription(256, p_unused_time => 'CREDIT', p_as_of => '2027-05-01 00:05Z');
SELECT is(billing_test.credit_of(256), 34499::bigint, 'of that month half comes back, and no more: 3000 were paid for it');

-- An imported period was paid elsewhere: nothing of it is credited here.
SELECT billing_test.customer('imported');
SELECT billing_api.import_subscription(320, 'BASIC', '2027-04-01Z', 'import', p_as_of => '2027-04-10Z');
SELECT billing_api.change_plan(320, 'PRO', p_as_of => '2027-04-16Z');
SELECT is(
    (SELECT i.lines FROM billing_test.invoices_of(320) AS i WHERE i.invoice LIKE 'CHANGE%'), 'PRORATION 4500',
    'what was paid elsewhere is not credited'
);

-- Half of it has gone back already: of 1500 that are unused, 1000 were paid and not refunded.
SELECT billing_test.paid('refunded', 'BASIC', '2027-04-01Z');
SELECT billing_api.refund_invoice(i.invoice_id, 2000, p_idempotency_key => 'refund', p_as_of => '2027-04-02Z')
FROM billing_api.invoice AS i WHERE i.subscription_id = 384;
SELECT billing_api.change_plan(384, 'FREE', p_as_of => '2027-04-16Z');
SELECT results_eq(
    $$SELECT e.line_no, e.amount, e.formula, e.recomputed
      FROM billing_api.invoice AS i CROSS JOIN LATERAL billing_ops.explain_invoice(i.invoice_id) AS e
      WHERE i.subscription_id = 384 AND i.kind = 'CHANGE'$$,
    $$VALUES (1, -1000::bigint, '-least(floor(3000 x 1 x 1296000 s / 2592000 s), 1000 paid for the period)', -1000::bigint),
             (2, 1000, '-(sum of the other lines)', 1000)$$,
    'no more is credited than was paid and has not gone back, and the invoice says so'
);
SELECT is(billing_test.credit_of(384), 1000::bigint, 'and that is what the customer gets');

-- Changes that were paid with credit count as paid: 3000 from a gift.
SELECT billing_test.paid('gift', 'BASIC', '2027-04-01Z');
SELECT billing_api.grant_credit(448, 3000, 'USD', 'gift', 'gift', p_as_of => '2027-04-02Z');
SELECT is(s.plan_code, 'PRO', 'what credit covers takes effect at once')
FROM billing_api.change_plan(448, 'PRO', p_as_of => '2027-04-16Z') AS s;
SELECT is(billing_test.credit_of(448), 0::bigint, 'the gift is used up');
SELECT billing_api.change_plan(448, 'FREE', p_as_of => '2027-04-16Z');
SELECT is(billing_test.credit_of(448), 4500::bigint, 'and comes back with the unused half of PRO');

-- Granted first and never paid: the end takes off what it waives. 15 days BASIC and 5 days PRO were used: 1500 + 1500.
SELECT billing_test.paid('waived', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(512, 'PRO', p_payment_behavior => 'GRANT_FIRST', p_as_of => '2027-04-16Z');
SELECT billing_api.cancel_subscription(512, p_unused_time => 'CREDIT', p_as_of => '2027-04-21Z');
SELECT is(billing_test.credit_of(512), 0::bigint, 'what was used and not paid is taken off before anything comes back');

-- The same by lines that wait for the next invoice; and with what the customer is owed on top of it.
SELECT billing_test.paid('waiting', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(576, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_api.cancel_subscription(576, p_unused_time => 'CREDIT', p_as_of => '2027-04-21Z');
SELECT is(billing_test.credit_of(576), 0::bigint, 'lines that wait are taken off as well');
SELECT billing_test.paid('owed to', 'PRO', '2027-04-01Z');
SELECT billing_api.change_plan(640, 'BASIC', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-11Z');
SELECT billing_api.cancel_subscription(640, p_unused_time => 'CREDIT', p_as_of => '2027-04-21Z');
SELECT results_eq(
    'SELECT e.amount FROM billing.credit_entry AS e INNER JOIN billing.subscription AS s USING (customer_id)
     WHERE s.subscription_id = 640 ORDER BY e.entry_seq',
    'VALUES (4000::bigint), (1000)', 'what the customer is owed becomes credit: 9000 were paid, 3000 + 1000 used'
);

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is(
    (SELECT count(*) FROM billing.invoice AS i WHERE i.total < 0 OR i.amount_due < 0), 0::bigint, 'no invoice was ever negative'
);
SELECT * FROM finish();
ROLLBACK;
