-- Per period, credit given and money sent back never exceed what was paid with both.
BEGIN;
SELECT plan(25);
SELECT billing_test.plans();
CREATE FUNCTION pg_temp.refund(p_subscription_id bigint, p_place integer, p_amount bigint, p_key text DEFAULT 'r')
RETURNS text
LANGUAGE sql
AS $function$
    SELECT format('SELECT billing_api.refund_invoice(%s, %s, %L, %L)', i.invoice_id, coalesce(p_amount::text, 'NULL'), p_key, '2027-05-02Z')
    FROM billing.invoice AS i
    WHERE i.subscription_id = p_subscription_id
    ORDER BY i.invoice_id
    OFFSET p_place - 1 LIMIT 1;
$function$;
CREATE FUNCTION pg_temp.sent(p_subscription_id bigint)
RETURNS bigint
LANGUAGE sql
AS $function$
    SELECT coalesce(sum(f.amount), 0)::bigint
    FROM billing.refund AS f
    INNER JOIN billing.invoice AS i ON i.customer_id = f.customer_id AND i.invoice_id = f.invoice_id
    WHERE i.subscription_id = p_subscription_id;
$function$;

-- 3000 paid; half a month of 3000 for half of 1000 gives 1000.
SELECT billing_test.paid('a downgrade', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(64, 'TEAM', p_as_of => '2027-04-16Z');
SELECT is(billing_test.credit_of(64), 1000::bigint, '1000 of 3000 became credit');
SELECT billing_test.refuses(pg_temp.refund(64, 1, 2500), 'SB330', 'then 2500 are too much', p_detail => '2000');
SELECT lives_ok(pg_temp.refund(64, 1, 2000), '2000 are left');
SELECT billing_test.refuses(pg_temp.refund(64, 1, NULL, 'q'), 'SB330', 'and nothing more', p_detail => '0');

-- 1000 and 4000 paid, 4000 became credit: 1000 is left, of whichever payment.
SELECT billing_test.paid('to and fro', 'TEAM', '2027-04-01Z');
SELECT billing_api.change_plan(128, 'PRO', p_as_of => '2027-04-16Z');
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT billing_api.change_plan(128, 'TEAM', p_as_of => '2027-04-16Z');
SELECT results_eq(
    'SELECT i.invoice FROM billing_test.invoices_of(128) AS i',
    $$VALUES ('INITIAL PAID 1000 paid'), ('CHANGE PAID 4000 paid'), ('CHANGE PAID ')$$, '5000 were paid'
);
SELECT is(billing_test.credit_of(128), 4000::bigint, '4000 became credit');
SELECT billing_test.refuses(pg_temp.refund(128, 2, 4000), 'SB330', 'the change is not refunded as well', p_detail => '1000');
SELECT lives_ok(pg_temp.refund(128, 2, 400), '400 of it are');
SELECT billing_test.refuses(pg_temp.refund(128, 1, 601, 'p'), 'SB330', 'then the first payment gives the rest', p_detail => '600');
SELECT lives_ok(pg_temp.refund(128, 1, NULL, 's'), 'the rest');
SELECT is(pg_temp.sent(128), 1000::bigint, '1000 and the credit of 4000 make 5000');

-- 1500 of 3000 go into the year, which costs 36000 and is paid with 34500.
SELECT billing_test.paid('a year', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(192, 'ANNUAL', p_as_of => '2027-04-16Z');
SELECT billing_test.refuses(
    pg_temp.refund(192, 1, 1501), 'SB330', 'what an unpaid year is to take over stays', p_detail => '1500'
);
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT billing_test.refuses(pg_temp.refund(192, 1, 1501), 'SB330', 'and once it is paid, too', p_detail => '1500');
SELECT lives_ok(pg_temp.refund(192, 1, 1500), 'what was used of the month may go back');
SELECT billing_test.refuses(pg_temp.refund(192, 2, 34501, 'p'), 'SB330', 'and the money of the year', p_detail => '34500');
SELECT lives_ok(pg_temp.refund(192, 2, NULL, 's'), 'all of it');

-- The next invoice is to give back 1000 of 3000, and does: 1000 - 1000.
SELECT billing_test.paid('a line that waits', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(256, 'TEAM', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_test.refuses(pg_temp.refund(256, 1, 2001), 'SB330', 'what waits counts as given', p_detail => '2000');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT billing_test.refuses(pg_temp.refund(256, 1, 2001), 'SB330', 'as it does when it was', p_detail => '2000');

-- The next invoice collects 3000 more for April with May: 9000 + 3000 in one payment, 3000 of April before.
SELECT billing_test.paid('collected later', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(320, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT billing_test.collect(p_as_of => '2027-05-01Z');
SELECT results_eq(
    'SELECT i.invoice FROM billing_test.invoices_of(320) AS i',
    $$VALUES ('INITIAL PAID 3000 paid'), ('RENEWAL PAID 12000 paid')$$, '15000 were paid'
);
SELECT billing_test.refuses(pg_temp.refund(320, 2, 12001), 'SB330', 'each payment may go back', p_detail => '12000');
SELECT lives_ok(pg_temp.refund(320, 2, NULL), 'the one for both periods');
SELECT billing_test.refuses(pg_temp.refund(320, 1, 3001, 'q'), 'SB330', 'and the one before', p_detail => '3000');
SELECT lives_ok(pg_temp.refund(320, 1, NULL, 's'), 'all in all');

SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing');
SELECT is_empty($$SELECT * FROM billing_ops.check_integrity() WHERE severity = 'BROKEN'$$, 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
