-- Credit that paid a change goes back by voiding only while nothing was computed from the period since.
BEGIN;
SELECT plan(23);
SELECT billing_test.plans();

-- Half of April is left: PRO to TEAM gives back 4500 - 500, and back again costs the same 4000.
CREATE FUNCTION pg_temp.to_and_fro(p_name text)
RETURNS bigint
LANGUAGE plpgsql
AS $function$
DECLARE
    v_subscription_id bigint := billing_test.paid(p_name, 'PRO', '2027-04-01Z');
BEGIN
    PERFORM billing_api.change_plan(v_subscription_id, 'TEAM', p_as_of => '2027-04-16Z');
    PERFORM billing_api.change_plan(v_subscription_id, 'PRO', p_as_of => '2027-04-16Z');
    RETURN v_subscription_id;
END;
$function$;
CREATE FUNCTION pg_temp.paid_change(p_subscription_id bigint)
RETURNS bigint
LANGUAGE sql
AS $function$
    SELECT max(e.invoice_id)
    FROM billing.credit_entry AS e
    INNER JOIN billing.invoice AS i ON i.customer_id = e.customer_id AND i.invoice_id = e.invoice_id
    WHERE i.subscription_id = p_subscription_id AND e.kind = 'DRAWN' AND e.amount = -4000;
$function$;
CREATE FUNCTION pg_temp.void(p_subscription_id bigint)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT format('SELECT billing_api.void_invoice(%s, p_as_of => %L)', pg_temp.paid_change(p_subscription_id), '2027-04-16Z');
$function$;

SELECT pg_temp.to_and_fro('another change');
SELECT results_eq(
    'SELECT i.invoice FROM billing_test.invoices_of(64) AS i',
    $$VALUES ('INITIAL PAID 9000 paid'), ('CHANGE PAID '), ('CHANGE PAID 4000 by credit')$$, 'credit of the first change pays the second'
);
SELECT billing_api.change_plan(64, 'TEAM', p_as_of => '2027-04-16Z');
SELECT is(billing_test.credit_of(64), 4000::bigint, 'the third gives it back');
SELECT billing_test.refuses(pg_temp.void(64), 'SB307', 'so voiding the second does not give it once more', p_detail => 'PAID');
SELECT is(billing_test.credit_of(64), 4000::bigint, 'it stays at 4000');

-- An end gives half of 9000 as credit, on the invoice of the period.
SELECT pg_temp.to_and_fro('an end');
SELECT billing_api.cancel_subscription(128, false, 'CREDIT', p_as_of => '2027-04-16Z');
SELECT is(billing_test.credit_of(128), 4500::bigint, 'an end gives 4500');
SELECT billing_test.refuses(pg_temp.void(128), 'SB307', 'nor after an end', p_detail => 'PAID');
SELECT is(billing_test.credit_of(128), 4500::bigint, 'it stays at 4500');

SELECT pg_temp.to_and_fro('a refund');
SELECT billing_api.refund_invoice(i.invoice_id, 5000, 'some', '2027-04-16Z')
FROM billing.invoice AS i WHERE i.subscription_id = 192 AND i.kind = 'INITIAL';
SELECT billing_test.refuses(pg_temp.void(192), 'SB307', 'nor after a refund of the period', p_detail => 'PAID');

-- 4500 of the month go into the year.
SELECT pg_temp.to_and_fro('a year');
SELECT billing_api.change_plan(256, 'ANNUAL', p_as_of => '2027-04-16Z');
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT results_eq(
    'SELECT i.invoice FROM billing_test.invoices_of(256) AS i OFFSET 3', $$VALUES ('CHANGE PAID 31500 paid')$$, 'a year takes over 4500'
);
SELECT billing_test.refuses(pg_temp.void(256), 'SB307', 'nor once another period was paid from it', p_detail => 'PAID');

SELECT pg_temp.to_and_fro('a line that waits');
SELECT billing_api.change_plan(320, 'TEAM', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_test.refuses(pg_temp.void(320), 'SB307', 'nor while the next invoice is to give it back', p_detail => 'PAID');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT billing_test.refuses(pg_temp.void(320), 'SB307', 'nor when that has', p_detail => 'PAID');

-- Nothing came after it: what came before does not matter.
SELECT pg_temp.to_and_fro('nothing since');
SELECT is(billing_test.credit_of(384), 0::bigint, 'the credit is used up');
SELECT lives_ok(pg_temp.void(384), 'the last of a period can be voided');
SELECT is(billing_test.credit_of(384), 4000::bigint, 'and gives back what it drew');
SELECT billing_test.refuses(pg_temp.void(384), 'SB307', 'once', p_detail => 'VOID');

-- Time that was forgiven is worth what was paid for it: half of 1000, not of 9000.
SELECT pg_temp.to_and_fro('forgiven, then changed');
SELECT lives_ok(pg_temp.void(448), 'a change is forgiven');
SELECT billing_api.change_plan(448, 'TEAM', p_as_of => '2027-04-16Z');
SELECT is(
    billing_test.lines_of((SELECT max(i.invoice_id) FROM billing.invoice AS i WHERE i.subscription_id = 448)),
    'PRORATION -500, PRORATION 500', 'a change back gives nothing'
);
SELECT is(billing_test.credit_of(448), 4000::bigint, 'so 4000 come back once in this order, too');
SELECT pg_temp.to_and_fro('forgiven, then ended');
SELECT lives_ok(pg_temp.void(512), 'another is');
SELECT billing_api.cancel_subscription(512, false, 'CREDIT', p_as_of => '2027-04-16Z');
SELECT is(billing_test.credit_of(512), 4500::bigint, 'an end gives 500 more');

SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing');
SELECT is_empty($$SELECT * FROM billing_ops.check_integrity() WHERE severity = 'BROKEN'$$, 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
