-- B18, H01, H02, H17: no factor, no rounding, no minor unit too many.
BEGIN;
SELECT plan(13);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_api.create_plan(p.code, p.code, p.amount, p.currency, 'MONTH', p_as_of => '2027-01-01T00:00:00Z')
FROM (VALUES
    ('B18', 8000::bigint, 'USD'), ('H01', 10000, 'JPY'), ('H02', 12345, 'KWD'), ('H17', 5000000000000, 'USD'),
    ('MOST', 1000000000000000, 'USD'), ('SEATS', 333, 'USD')
) AS p (code, amount, currency);

CREATE FUNCTION pg_temp.sell(p_plan text, p_currency text, p_at timestamptz, p_quantity integer DEFAULT 1)
RETURNS bigint
LANGUAGE sql
AS $function$
    SELECT s.subscription_id
    FROM billing_api.create_subscription(
        billing_test.customer(p_plan, p_currency), p_plan, p_plan, p_quantity => p_quantity,
        p_payment_behavior => 'GRANT_FIRST', p_as_of => p_at
    ) AS s;
$function$;
CREATE FUNCTION pg_temp.amounts(p_plan text)
RETURNS SETOF text
LANGUAGE sql
AS $function$
    SELECT format(
        '%s %s %s %s x %s%s', i.period_start::date, i.total, l.kind, l.unit_amount, l.quantity, l.seconds_billed / l.seconds_total
    )
    FROM billing.invoice AS i
    LEFT JOIN billing.invoice_line AS l USING (customer_id, invoice_id)
    WHERE i.plan_code = p_plan
    ORDER BY i.period_start;
$function$;

SELECT pg_temp.sell('B18', 'USD', '2027-06-16T00:00:00Z');
SELECT billing_worker.renew_due(10, '2027-08-15T00:00:00Z') FROM generate_series(1, 3);
SELECT results_eq(
    $$SELECT pg_temp.amounts('B18')$$,
    $$VALUES ('2027-06-16 8000 PERIOD 8000 x 1'), ('2027-07-16 8000 PERIOD 8000 x 1')$$,
    'B18: invoices made late for past periods are 8000 each, on lines that are not prorated'
);

SELECT pg_temp.sell('H01', 'JPY', '2027-10-01T00:00:00Z');
SELECT pg_temp.sell('H02', 'KWD', '2027-10-01T00:00:00Z');
SELECT pg_temp.sell('H17', 'USD', '2027-10-01T00:00:00Z');
SELECT pg_temp.sell('MOST', 'USD', '2027-10-01T00:00:00Z', 1);
SELECT pg_temp.sell('SEATS', 'USD', '2027-10-01T00:00:00Z', 1000000);
SELECT billing_worker.renew_due(10, '2027-11-01T00:00:00Z');

SELECT results_eq(
    $$SELECT pg_temp.amounts('H01')$$, $$VALUES ('2027-10-01 10000 PERIOD 10000 x 1'), ('2027-11-01 10000 PERIOD 10000 x 1')$$,
    'H01: 10000 yen are 10000'
);
SELECT results_eq(
    $$SELECT pg_temp.amounts('H02')$$, $$VALUES ('2027-10-01 12345 PERIOD 12345 x 1'), ('2027-11-01 12345 PERIOD 12345 x 1')$$,
    'H02: 12.345 dinars are 12345'
);
SELECT results_eq(
    $$SELECT pg_temp.amounts('H17')$$,
    $$VALUES ('2027-10-01 5000000000000 PERIOD 5000000000000 x 1'), ('2027-11-01 5000000000000 PERIOD 5000000000000 x 1')$$,
    'H17: 5 000 000 000 000 is billed as it is'
);
SELECT results_eq(
    $$SELECT pg_temp.amounts('MOST')$$,
    $$VALUES ('2027-10-01 1000000000000000 PERIOD 1000000000000000 x 1'),
      ('2027-11-01 1000000000000000 PERIOD 1000000000000000 x 1')$$,
    'so is the highest price that there may be'
);
SELECT results_eq(
    $$SELECT pg_temp.amounts('SEATS')$$,
    $$VALUES ('2027-10-01 333000000 PERIOD 333 x 1000000'), ('2027-11-01 333000000 PERIOD 333 x 1000000')$$,
    'a million seats cost a million times the price of one'
);

-- The gateway is asked for the same integers.
CREATE TEMPORARY TABLE request AS
SELECT q.* FROM billing_worker.start_attempts('sim', 100, 'test', '2027-11-01T00:00:00Z') AS q;
SELECT is(
    (SELECT array_agg(DISTINCT q.amount) FROM request AS q WHERE q.currency = 'JPY'), '{10000}',
        'H01: the gateway is asked for 10000, not for 1000000'
);
SELECT is(
    (SELECT array_agg(DISTINCT q.amount) FROM request AS q WHERE q.currency = 'KWD'), '{12345}', 'H02: the gateway is asked for 12345'
);
SELECT is(
    (SELECT count(*) FROM request AS q WHERE q.amount = 5000000000000), 2::bigint, 'H17: and for the large amount'
);
SELECT billing_test.report(q.attempt_id, 'SUCCEEDED', '2027-11-01T00:00:00Z', p_payment_id => 'p' || q.attempt_id,
    p_amount => q.amount, p_currency => q.currency)
FROM request AS q;
SELECT results_eq(
    $$SELECT DISTINCT o.payload ->> 'currency', o.payload ->> 'amountPaid', o.payload ->> 'amountDue'
      FROM billing.outbox_event AS o WHERE o.event_type = 'InvoicePaid' AND o.payload ->> 'currency' <> 'USD' ORDER BY 1$$,
    $$VALUES ('JPY', '10000', '0'), ('KWD', '12345', '0')$$,
    'H01, H02: what was paid is told in the same units'
);
SELECT is_empty($$SELECT i.* FROM billing.invoice AS i WHERE i.status <> 'PAID'$$, 'everything is paid to the last unit');

-- Beyond the range of amounts.
SELECT is(
    billing.prorated_amount(5000000000000, 1, 1296000, 2592000), 2500000000000::bigint,
    'H17: half a month of the large price is half of it, although price times seconds is beyond bigint'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(
        (SELECT c.customer_id FROM billing.customer AS c WHERE c.external_ref = 'B18'), 'MOST', 'k', 'other', 1000000,
        p_as_of => '2027-10-01T00:00:00Z')$$,
    'SB106', 'H17: a total beyond the range of amounts is refused, not wrapped'
);

SELECT * FROM finish();
ROLLBACK;
