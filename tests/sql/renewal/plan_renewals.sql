-- The only step that decides; called alone it is a dry run.
BEGIN;
SELECT plan(14);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
CREATE TEMPORARY TABLE sold (name text, customer_id bigint, subscription_id bigint);
CREATE FUNCTION pg_temp.sell(p_name text, p_at timestamptz, p_quantity integer DEFAULT 1)
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    v_customer_id bigint := billing_test.customer(p_name);
BEGIN
    INSERT INTO sold
    SELECT p_name, v_customer_id, s.subscription_id
    FROM billing_api.create_subscription(
        v_customer_id, 'BASIC', p_name, p_quantity => p_quantity, p_payment_behavior => 'GRANT_FIRST', p_as_of => p_at
    ) AS s;
END;
$function$;
SELECT pg_temp.sell('one', '2027-03-31T08:00:00Z');
SELECT pg_temp.sell('seven', '2027-04-01T00:00:00Z', 7);
SELECT billing_test.collect(p_as_of => '2027-04-01T00:00:00Z');
CREATE FUNCTION pg_temp.plans()
RETURNS SETOF billing.renewal
LANGUAGE sql
AS $function$
    SELECT (r).*
    FROM unnest(billing.plan_renewals(ARRAY(
        SELECT ROW(s.customer_id, s.subscription_id)::billing.subscription_key FROM sold AS s
    ))) AS r;
$function$;
CREATE TEMPORARY TABLE fingerprint AS SELECT billing_test.fingerprint() AS before;

SELECT results_eq(
    $$SELECT x.name, p.verdict, p.from_status, p.to_status, p.reason, p.period_no, p.period_start, p.period_end, p.next_renewal_at
      FROM pg_temp.plans() AS p INNER JOIN sold AS x USING (subscription_id) ORDER BY 1$$,
    $$VALUES ('one', 'RENEW', 'ACTIVE', 'ACTIVE', NULL, 2, '2027-04-30T08:00Z'::timestamptz, '2027-05-31T08:00Z'::timestamptz,
        '2027-05-31T08:00Z'::timestamptz),
      ('seven', 'RENEW', 'ACTIVE', 'ACTIVE', NULL, 2, '2027-05-01Z', '2027-06-01Z', '2027-06-01Z')$$,
    'a renewal is planned from the end of the last period to the next boundary of the anchor'
);
SELECT results_eq(
    $$SELECT x.name, p.plan_code, p.quantity, p.unit_amount, p.total, p.currency, p.credit, p.event_count
      FROM pg_temp.plans() AS p INNER JOIN sold AS x USING (subscription_id) ORDER BY 1$$,
    $$VALUES ('one', 'BASIC', 1, 3000::bigint, 3000::bigint, 'USD', 0::bigint, 1), ('seven', 'BASIC', 7, 3000, 21000, 'USD', 0, 1)$$,
    'at price times quantity, one event each'
);
SELECT is(
    (SELECT f.before = billing_test.fingerprint() FROM fingerprint AS f), true, 'planning changes nothing'
);
SELECT results_eq(
    $$SELECT p.version, p.event_seq FROM pg_temp.plans() AS p ORDER BY p.customer_id$$,
    $$SELECT s.version, s.event_seq FROM billing.subscription AS s ORDER BY s.customer_id$$,
    'it names the version and the number before'
);
SELECT is(
    (SELECT count(DISTINCT p.invoice_id) FROM pg_temp.plans() AS p WHERE NOT EXISTS (
        SELECT FROM billing.invoice AS i WHERE i.invoice_id = p.invoice_id
    )), 2::bigint, 'each gets a new invoice number'
);
SELECT is(
    (SELECT array_agg(p.subscription_id) FROM pg_temp.plans() AS p),
    (SELECT array_agg(s.subscription_id ORDER BY s.customer_id, s.subscription_id) FROM sold AS s), 'in key order'
);
SELECT is(billing.plan_renewals('{}'), '{}'::billing.renewal[], 'nothing claimed is nothing planned');
SELECT is(billing.plan_renewals(NULL), '{}'::billing.renewal[], 'nor is NULL');
SELECT is(
    billing.plan_renewals(ARRAY[ROW(1, 1)::billing.subscription_key, ROW(NULL, NULL)::billing.subscription_key]),
    '{}'::billing.renewal[], 'keys of nobody are left out, which renew_claimed notices'
);

-- Credit by running sum, also where the balance is 1.
SELECT billing_api.grant_credit(s.customer_id, 1, 'USD', 'a cent', 'k', '2027-04-02T00:00:00Z') FROM sold AS s WHERE s.name = 'seven';
SELECT row_eq(
    $$SELECT p.credit, p.credit_seq, p.credit_balance, p.event_count FROM pg_temp.plans() AS p WHERE p.quantity = 7$$,
    ROW(1::bigint, 2::bigint, 0::bigint, 1), 'a cent of credit is drawn under the next number of the ledger, and leaves nothing'
);
SELECT billing_api.grant_credit(s.customer_id, 20999, 'USD', 'the rest', 'k2', '2027-04-02T00:00:00Z') FROM sold AS s
    WHERE s.name = 'seven';
SELECT row_eq(
    $$SELECT p.credit, p.credit_seq, p.credit_balance, p.event_count FROM pg_temp.plans() AS p WHERE p.quantity = 7$$,
    ROW(21000::bigint, 3::bigint, 0::bigint, 3), 'covered to the cent it is paid at once, which makes three events'
);
SELECT billing_api.grant_credit(s.customer_id, 1, 'USD', 'more', 'k3', '2027-04-02T00:00:00Z') FROM sold AS s WHERE s.name = 'seven';
SELECT row_eq(
    $$SELECT p.credit, p.credit_seq, p.credit_balance FROM pg_temp.plans() AS p WHERE p.quantity = 7$$,
    ROW(21000::bigint, 4::bigint, 1::bigint), 'never more than the total'
);
SELECT row_eq(
    $$SELECT p.credit, p.credit_seq, p.credit_balance FROM pg_temp.plans() AS p WHERE p.quantity = 1$$,
    ROW(0::bigint, NULL::bigint, NULL::bigint), 'who has no credit draws none'
);

-- Beyond bigint.
SELECT billing_api.create_plan('DEAR', 'Dear', 1000000000000000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
UPDATE billing.subscription AS s
SET price_id = (SELECT pr.price_id FROM billing.price AS pr WHERE pr.amount = 1000000000000000), quantity = 1000000,
    version = s.version + 1
WHERE s.quantity = 7;
SELECT throws_ok('SELECT count(*) FROM pg_temp.plans()', '22003', NULL, 'a total beyond bigint is an error, not a small number');

SELECT * FROM finish();
ROLLBACK;
