-- A change of interval gives back the rest of a period that was not paid in full: lines about it wait for an invoice, and
-- the change takes them up. While it is owed itself, an end gives back what was paid, and nothing else.
BEGIN;
SELECT plan(11);
SELECT billing_test.plans();
CREATE FUNCTION pg_temp.credit_at_the_end(p_name text, p_as_of timestamptz)
RETURNS bigint
LANGUAGE plpgsql
AS $function$
DECLARE
    v_subscription_id bigint;
BEGIN
    SELECT s.subscription_id
    INTO STRICT v_subscription_id
    FROM billing.subscription AS s INNER JOIN billing.customer AS c USING (customer_id)
    WHERE c.external_ref = p_name;
    PERFORM billing_api.change_plan(v_subscription_id, 'ANNUAL', 1, p_payment_behavior => 'GRANT_FIRST', p_as_of => p_as_of);
    PERFORM billing_api.cancel_subscription(v_subscription_id, p_unused_time => 'CREDIT', p_as_of => p_as_of);
    RETURN billing_test.credit_of(v_subscription_id);
END;
$function$;

SELECT billing_api.change_plan(
    billing_test.paid('large', 'BASIC', '2027-04-01Z'), 'ENTERPRISE', 100, 'NEXT_INVOICE', p_as_of => '2027-04-01Z'
);
SELECT is(pg_temp.credit_at_the_end('large', '2027-04-01Z'), 3000::bigint, 'of 1500000 on its way nothing comes back, of 3000 paid all');

-- 4500 worth of PRO was used, for 3000.
SELECT billing_api.change_plan(billing_test.paid('up', 'BASIC', '2027-04-01Z'), 'PRO', 1, 'NEXT_INVOICE', p_as_of => '2027-04-01Z');
SELECT is(pg_temp.credit_at_the_end('up', '2027-04-16Z'), 0::bigint, 'where more was used than paid there is no rest');

-- 15 days of 3000 a month are 1500, 5 days of 6000 are 1000: 500 of 3000 are left.
SELECT billing_api.change_plan(billing_test.paid('more', 'BASIC', '2027-04-01Z'), 'BASIC', 2, 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT is(pg_temp.credit_at_the_end('more', '2027-04-21Z'), 500::bigint, 'where less was used the rest comes back');

-- Half a year later the new period has used it up.
SELECT billing_api.change_plan(billing_test.paid('late', 'BASIC', '2027-04-01Z'), 'BASIC', 2, 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_api.change_plan(s.subscription_id, 'ANNUAL', 1, p_payment_behavior => 'GRANT_FIRST', p_as_of => '2027-04-21Z')
FROM billing.subscription AS s INNER JOIN billing.customer AS c USING (customer_id) WHERE c.external_ref = 'late';
SELECT billing_api.cancel_subscription(s.subscription_id, p_unused_time => 'CREDIT', p_as_of => '2027-10-21Z')
FROM billing.subscription AS s INNER JOIN billing.customer AS c USING (customer_id) WHERE c.external_ref = 'late';
SELECT is(billing_test.credit_of(s.subscription_id), 0::bigint, 'but not what the new period has used up')
FROM billing.subscription AS s INNER JOIN billing.customer AS c USING (customer_id) WHERE c.external_ref = 'late';

-- Half a month of BASIC is 1500: 7500 of 9000 are left, of which 6000 waited for an invoice.
SELECT billing_api.change_plan(billing_test.paid('down', 'PRO', '2027-04-01Z'), 'BASIC', 1, 'NEXT_INVOICE', p_as_of => '2027-04-01Z');
SELECT is(pg_temp.credit_at_the_end('down', '2027-04-16Z'), 7500::bigint, 'what waits for the customer comes back with the rest');

-- 33 are less than the gateway takes, and were carried on.
SELECT billing_ops.set_gateway_minimum('sim', 'USD', 50);
SELECT billing_api.create_plan('DAY', 'Day', 33, 'USD', 'DAY', p_as_of => '2026-01-01Z');
SELECT billing_test.paid('carried', 'DAY', '2027-04-01Z', p_dunning_policy => 'standard');
SELECT is(
    (SELECT i.carried FROM billing.invoice AS i INNER JOIN billing.customer AS c USING (customer_id) WHERE c.external_ref = 'carried'),
    33::bigint, 'a small amount is carried on'
);
SELECT is(pg_temp.credit_at_the_end('carried', '2027-04-01Z'), 0::bigint, 'and what was carried on was not paid');

-- Carried on twice, into a period that was renewed ahead: 20, and then 40.
SELECT billing_api.create_plan('SMALL', 'Small', 20, 'USD', 'MONTH', p_as_of => '2026-01-01Z');
SELECT billing_test.paid('twice', 'SMALL', '2027-04-01Z');
SELECT billing_api.renew_now(s.subscription_id, p_as_of => '2027-04-01Z')
FROM billing_api.subscription AS s WHERE s.plan_code = 'SMALL';
SELECT billing_test.collect(p_as_of => '2027-04-01Z');
SELECT results_eq(
    $$SELECT i.carried FROM billing.invoice AS i INNER JOIN billing.customer AS c USING (customer_id)
      WHERE c.external_ref = 'twice' ORDER BY i.invoice_id$$,
    'VALUES (20::bigint), (40)', 'what was carried on may be carried on again'
);
SELECT billing_api.cancel_subscription(s.subscription_id, p_unused_time => 'CREDIT', p_as_of => '2027-04-01Z')
FROM billing_api.subscription AS s WHERE s.plan_code = 'SMALL';
SELECT is(billing_test.credit_of(s.subscription_id), 0::bigint, 'and was not paid by that')
FROM billing_api.subscription AS s WHERE s.plan_code = 'SMALL';

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
