-- B01, B02, B03: every boundary is counted from the anchor, and every period has one invoice at the full price.
BEGIN;
SELECT plan(13);

SELECT billing_test.clock('2040-01-01T00:00:00Z');
SELECT billing_api.create_plan('MONTHLY', 'Monthly', 3000, 'USD', 'MONTH', p_as_of => '2026-01-01T00:00:00Z');
SELECT billing_api.create_plan('YEARLY', 'Yearly', 36000, 'USD', 'YEAR', p_as_of => '2026-01-01T00:00:00Z');

CREATE TEMPORARY TABLE sold (name text, subscription_id bigint);
INSERT INTO sold
SELECT s.name, billing_test.subscription(
    billing_test.customer(s.name), s.plan_code, p_payment_behavior => 'PAY_FIRST', p_as_of => s.at
)
FROM (VALUES
    ('b01', 'MONTHLY', '2027-01-31T00:00:00Z'::timestamptz),
    ('b02 leap', 'MONTHLY', '2028-01-31T00:00:00Z'),
    ('b02 30th', 'MONTHLY', '2027-01-30T00:00:00Z'),
    ('b02 29th', 'MONTHLY', '2027-01-29T00:00:00Z'),
    ('b03', 'YEARLY', '2028-02-29T00:00:00Z')
) AS s (name, plan_code, at);
-- Each is paid at the instant of its sign-up, which becomes its anchor.
SELECT billing_test.report(
    (SELECT q.attempt_id FROM billing_worker.start_attempts('sim', 1, 'test', i.issued_at) AS q), 'SUCCEEDED', i.issued_at
)
FROM billing.invoice AS i
ORDER BY i.issued_at;

CREATE FUNCTION pg_temp.renew_until(p_until timestamptz)
RETURNS void
LANGUAGE plpgsql
AS $function$
-- At each boundary, as runs that are never late.
DECLARE
    v_due timestamptz;
BEGIN
    LOOP
        SELECT min(s.next_renewal_at) INTO v_due FROM billing.subscription AS s;
        EXIT WHEN v_due > p_until;
        PERFORM billing_worker.renew_due(10, v_due);
    END LOOP;
END;
$function$;

SELECT pg_temp.renew_until('2032-02-29T00:00:00Z');
SELECT results_eq(
    $$SELECT p.period_end::date FROM billing.subscription_period AS p INNER JOIN sold AS x USING (subscription_id)
      WHERE x.name = 'b01' ORDER BY p.period_start LIMIT 13$$,
    $$VALUES ('2027-02-28'::date), ('2027-03-31'), ('2027-04-30'), ('2027-05-31'), ('2027-06-30'), ('2027-07-31'),
      ('2027-08-31'), ('2027-09-30'), ('2027-10-31'), ('2027-11-30'), ('2027-12-31'), ('2028-01-31'), ('2028-02-29')$$,
    'B01: from 31 January the periods end on the last day of each month, 31 January again among them'
);
SELECT is(
    (SELECT format('%s of %s to %s', count(*), min(i.total), max(i.total))
     FROM billing.invoice AS i INNER JOIN sold AS x USING (subscription_id)
     WHERE x.name = 'b01' AND i.period_start < '2028-02-29Z'),
    '13 of 3000 to 3000', 'B01: each of the 13 invoices is the full price'
);
SELECT is_empty(
    $$SELECT l.* FROM billing.invoice_line AS l WHERE l.kind <> 'PERIOD' OR l.seconds_total IS NOT NULL$$,
    'B01: no line is prorated'
);
SELECT is_empty(
    $$SELECT p.period_start FROM billing.subscription_period AS p INNER JOIN sold AS x USING (subscription_id)
      WHERE x.name = 'b01' AND p.period_start::time <> '00:00'$$,
    'B01: the hour of the sign-up stays'
);

SELECT results_eq(
    $$SELECT x.name, p.period_end::date FROM billing.subscription_period AS p INNER JOIN sold AS x USING (subscription_id)
      WHERE x.name LIKE 'b02%'
        AND p.period_end <= CASE x.name WHEN 'b02 leap' THEN '2028-04-30Z' ELSE '2027-04-30Z' END::timestamptz
      ORDER BY x.name, p.period_start$$,
    $$VALUES ('b02 29th', '2027-02-28'::date), ('b02 29th', '2027-03-29'), ('b02 29th', '2027-04-29'),
      ('b02 30th', '2027-02-28'), ('b02 30th', '2027-03-30'), ('b02 30th', '2027-04-30'),
      ('b02 leap', '2028-02-29'), ('b02 leap', '2028-03-31'), ('b02 leap', '2028-04-30')$$,
    'B02: anchors on the 29th, 30th and 31st pass February in a common and in a leap year'
);

SELECT results_eq(
    $$SELECT p.period_end::date FROM billing.subscription_period AS p INNER JOIN sold AS x USING (subscription_id)
      WHERE x.name = 'b03' ORDER BY p.period_start$$,
    $$VALUES ('2029-02-28'::date), ('2030-02-28'), ('2031-02-28'), ('2032-02-29'), ('2033-02-28')$$,
    'B03: a year from 29 February ends on 28 February, and on the 29th in the next leap year'
);
SELECT results_eq(
    $$SELECT extract(year FROM i.period_start)::integer, count(*)::integer
      FROM billing.invoice AS i INNER JOIN sold AS x USING (subscription_id)
      WHERE x.name = 'b03' GROUP BY 1 ORDER BY 1$$,
    $$VALUES (2028, 1), (2029, 1), (2030, 1), (2031, 1), (2032, 1)$$,
    'B03: every calendar year has exactly one invoice, 2032 among them'
);

-- The property: a boundary never depends on the one before.
SELECT is_empty(
    $$SELECT s.subscription_id, p.period_end
      FROM billing.subscription_period AS p
      INNER JOIN billing.subscription AS s USING (customer_id, subscription_id)
      INNER JOIN billing.price AS pr USING (price_id)
      CROSS JOIN LATERAL (
          SELECT count(*)::integer AS no FROM billing.subscription_period AS q
          WHERE q.subscription_id = p.subscription_id AND q.period_start <= p.period_start
      ) AS k
      WHERE p.period_end <> (s.anchor_at + pr.period_length * k.no) AT TIME ZONE 'UTC'$$,
    'stepping from period to period gives what jumping from the anchor gives'
);
SELECT is_empty(
    $$SELECT s.subscription_id FROM billing.subscription AS s
      WHERE s.period_no <> (SELECT count(*) FROM billing.subscription_period AS p WHERE p.subscription_id = s.subscription_id)
         OR s.current_period_end <> s.next_renewal_at$$,
    'the number of the period and the due time follow'
);
SELECT is_empty(
    $$SELECT p.subscription_id, p.period_start FROM billing.subscription_period AS p
      LEFT JOIN billing.invoice AS i USING (customer_id, invoice_id)
      WHERE (i.period_start, i.period_end) IS DISTINCT FROM (p.period_start, p.period_end)$$,
    'each period names the invoice over exactly its time'
);
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o WHERE o.event_type = 'InvoiceOpened'),
    (SELECT count(*) FROM billing.invoice), 'each invoice was announced once'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
