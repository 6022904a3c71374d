-- An end at the start of a period removes its row instead of leaving one of no length, and all of it was unused.
BEGIN;
SELECT plan(9);
SELECT billing_test.plans();
SELECT billing_test.paid(x.name, 'BASIC', '2027-04-01Z') FROM (VALUES ('at the start'), ('just before'), ('unpaid')) AS x (name);
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-05-01Z');
SELECT billing_api.retry_invoice(i.invoice_id, p_as_of => '2027-05-01Z')
FROM billing.invoice AS i WHERE i.kind = 'RENEWAL' AND i.subscription_id <> 192;
SELECT billing_test.collect(p_as_of => '2027-05-01Z');

SELECT billing_api.cancel_subscription(64, p_unused_time => 'CREDIT', p_as_of => '2027-05-01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(64)', $$VALUES ('BILLED 2027-04-01 to 2027-05-01')$$,
    'at the start of May there is no row of May'
);
SELECT is(billing_test.credit_of(64), 3000::bigint, 'all of May comes back, and nothing of April');
-- A call from two minutes before, which finds May opened: it cannot end in April, which has been left.
SELECT billing_api.cancel_subscription(128, p_unused_time => 'CREDIT', p_as_of => '2027-04-30 23:58Z');
SELECT results_eq(
    'SELECT s.status, s.ended_at FROM billing_api.subscription AS s WHERE s.subscription_id = 128',
    $$VALUES ('CANCELED', '2027-05-01Z'::timestamptz)$$, 'a call from just before acts at the start'
);
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(128)', $$VALUES ('BILLED 2027-04-01 to 2027-05-01')$$, 'with the same timeline'
);
SELECT is(billing_test.credit_of(128), 3000::bigint, 'and the same credit');
-- May was never paid.
SELECT billing_api.cancel_subscription(192, p_unused_time => 'CREDIT', p_as_of => '2027-05-01Z');
SELECT is(billing_test.credit_of(192), 0::bigint, 'what was not paid does not come back');
SELECT results_eq(
    'SELECT i.invoice FROM billing_test.invoices_of(192) AS i', $$VALUES ('INITIAL PAID 3000 paid'), ('RENEWAL VOID 3000 due')$$,
    'it is void'
);
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
