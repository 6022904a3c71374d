-- B10: the same calls in four sessions' zones give the same rows.
BEGIN;
SELECT plan(5);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');

CREATE TEMPORARY TABLE outcome (
    zone text, renewed integer, again integer, period_start text, period_end text, seconds numeric, total bigint, due text, anchor text
);

CREATE FUNCTION pg_temp.sell_and_renew(p_zone text)
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    v_subscription_id bigint;
    v_renewed integer;
    v_again integer;
BEGIN
    PERFORM set_config('timezone', p_zone, true);
    v_subscription_id := billing_test.paid_subscription(
        billing_test.customer(p_zone), p_as_of => '2027-03-01T23:30:00-08:00'
    );
    v_renewed := billing_worker.renew_due(10, '2027-04-02T07:30:00Z');
    v_again := billing_worker.renew_due(10, '2027-04-02T07:30:00Z');
    INSERT INTO outcome
    SELECT
        p_zone, v_renewed, v_again, p.period_start AT TIME ZONE 'UTC', p.period_end AT TIME ZONE 'UTC',
        extract(epoch FROM p.period_end - p.period_start), i.total, i.next_attempt_at AT TIME ZONE 'UTC', s.anchor_at
    FROM billing.subscription_period AS p
    INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
    INNER JOIN billing.subscription AS s ON s.customer_id = p.customer_id AND s.subscription_id = p.subscription_id
    WHERE p.subscription_id = v_subscription_id;
    PERFORM billing_test.collect(p_as_of => '2027-04-02T07:30:00Z');
    PERFORM billing_api.cancel_subscription(v_subscription_id, p_as_of => '2027-04-02T08:00:00Z');
END;
$function$;

SELECT pg_temp.sell_and_renew(z.zone)
FROM unnest('{UTC,America/Los_Angeles,Asia/Kolkata,Pacific/Auckland}'::text[]) AS z (zone);
SET LOCAL timezone = 'UTC';

SELECT results_eq(
    $$SELECT DISTINCT o.period_start, o.period_end, o.seconds FROM outcome AS o ORDER BY 1$$,
    $$VALUES ('2027-03-02 07:30:00', '2027-04-02 07:30:00', 2678400::numeric),
      ('2027-04-02 07:30:00', '2027-05-02 07:30:00', 2592000)$$,
    'B10: all four periods run from 2 March to 2 April 07:30 UTC, 31 days, whatever daylight saving does elsewhere'
);
SELECT results_eq(
    $$SELECT o.zone, o.renewed, o.again, count(*)::integer FROM outcome AS o GROUP BY 1, 2, 3 ORDER BY 1$$,
    $$VALUES ('America/Los_Angeles', 1, 0, 2), ('Asia/Kolkata', 1, 0, 2), ('Pacific/Auckland', 1, 0, 2), ('UTC', 1, 0, 2)$$,
    'B10: each zone renews once, and sees that it has'
);
SELECT results_eq(
    'SELECT DISTINCT o.anchor FROM outcome AS o', $$VALUES ('2027-03-02 07:30:00')$$,
    'B10: the anchor is on the 2nd'
);
SELECT results_eq(
    $$SELECT DISTINCT o.total, o.due FROM outcome AS o WHERE o.period_start LIKE '2027-04%'$$,
    $$VALUES (3000::bigint, '2027-04-02 07:30:00')$$,
    'B10: the invoice is the full price and due at the boundary'
);
SELECT is_empty(
    $$SELECT o.aggregate_id, o.payload FROM billing.outbox_event AS o
      WHERE o.event_type = 'InvoiceOpened' AND o.payload ->> 'kind' = 'RENEWAL'
        AND (o.payload ->> 'periodStart', o.payload ->> 'periodEnd', o.payload ->> 'occurredAt')
        <> ('2027-04-02T07:30:00Z', '2027-05-02T07:30:00Z', '2027-04-02T07:30:00Z')$$,
    'B10: events tell the same instants'
);

SELECT * FROM finish();
ROLLBACK;
