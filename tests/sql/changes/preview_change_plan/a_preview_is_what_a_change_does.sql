-- C23: the same lines, totals, credit and period, and nothing is written.
BEGIN;
SELECT plan(19);
SELECT billing_test.plans();
SELECT billing_test.paid(x.name, x.plan_code, '2027-04-01Z')
FROM (VALUES ('up', 'BASIC'), ('down', 'PRO'), ('year', 'BASIC'), ('later', 'PRO'), ('next', 'BASIC'), ('overdue', 'FREE'), ('end',
'BASIC'))
    AS x (name, plan_code);

CREATE FUNCTION pg_temp.both(p_subscription_id bigint, p_plan_code text, p_timing text, p_as_of timestamptz, p_description text)
RETURNS SETOF text
LANGUAGE plpgsql
AS $function$
-- Ids and the version apart, which a rollback does not give back or a second look may not know.
DECLARE
    c_before CONSTANT text := billing_test.fingerprint();
    c_last CONSTANT bigint := (SELECT max(i.invoice_id) FROM billing.invoice AS i WHERE i.subscription_id = p_subscription_id);
    v_preview jsonb;
BEGIN
    v_preview := billing_api.preview_change_plan(p_subscription_id, p_plan_code, p_timing => p_timing, p_as_of => p_as_of);
    RETURN NEXT tap.is(billing_test.fingerprint(), c_before, p_description || ': a preview writes nothing');
    PERFORM billing_api.change_plan(p_subscription_id, p_plan_code, p_timing => p_timing, p_as_of => p_as_of);
    RETURN NEXT tap.is(
        regexp_replace(v_preview::text, '"invoice_id": \d+', '', 'g'),
        regexp_replace(
            billing.describe_change(s.customer_id, p_subscription_id, c_last)::text, '"invoice_id": \d+', '', 'g'
        ),
        p_description || ': a change does what its preview said'
    )
    FROM billing.subscription AS s WHERE s.subscription_id = p_subscription_id;
END;
$function$;

SELECT pg_temp.both(64, 'PRO', 'IMMEDIATE', '2027-04-16Z', 'an upgrade');
SELECT pg_temp.both(128, 'BASIC', 'IMMEDIATE', '2027-04-11Z', 'a downgrade');
SELECT pg_temp.both(192, 'ANNUAL', 'IMMEDIATE', '2027-04-16Z', 'a year');
SELECT pg_temp.both(256, 'BASIC', 'AT_PERIOD_END', '2027-04-16Z', 'the end of the period');
SELECT pg_temp.both(320, 'PRO', 'NEXT_INVOICE', '2027-04-16Z', 'the next invoice');
SELECT pg_temp.both(384, 'PRO', 'IMMEDIATE', '2027-06-16Z', 'what is overdue');
SELECT pg_temp.both(448, 'ANNUAL', 'IMMEDIATE', '2027-05-01Z', 'the very end of a period');

SELECT results_eq(
    $$SELECT p.j -> 'invoice' ->> 'total', p.j ->> 'creditBalance', p.j -> 'subscription' ->> 'plan_code',
             jsonb_path_query_array(p.j, '$.invoice.lines[*].amount')::text
      FROM billing_api.preview_change_plan(128, 'PRO', p_as_of => '2027-04-21Z') AS p (j)$$,
    $$VALUES ('2000', '2000', 'PRO', '[-1000, 3000]')$$, 'it tells the invoice with its lines, and the credit that is left'
);
SELECT is(
    billing_api.preview_change_plan(256, 'TEAM', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-21Z') -> 'invoice', 'null'::jsonb,
    'where a change has no invoice, none of an earlier one is shown'
);
SELECT is(
    jsonb_path_query_array(
        billing_api.preview_change_plan(320, 'BASIC', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-21Z'), '$.nextInvoiceLines[*].amount'
    )::text, '[-1500, 4500, -3000, 1000]', 'it tells what waits for the next invoice'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.preview_change_plan(64, 'BASIC', p_as_of => '2027-04-21Z')$$,
    'SB321', 'what a change would be refused for, a preview is'
);
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
