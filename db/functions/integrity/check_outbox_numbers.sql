CREATE OR REPLACE FUNCTION billing.check_outbox_numbers()
RETURNS SETOF billing.violation
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT
        'outbox_numbers', 'BROKEN', o.customer_id, format('subscription %s', o.aggregate_id),
        format('number %s stands in %s events, event_seq is %s', o.aggregate_seq, o.events, s.event_seq)
    FROM (
        SELECT e.customer_id, e.aggregate_id, e.aggregate_seq, count(*) AS events
        FROM billing.outbox_event AS e
        WHERE e.aggregate_type = 'subscription'
        GROUP BY e.customer_id, e.aggregate_id, e.aggregate_seq
    ) AS o
    LEFT JOIN billing.subscription AS s ON s.customer_id = o.customer_id AND s.subscription_id = o.aggregate_id
    WHERE o.events > 1 OR s.event_seq IS NULL OR o.aggregate_seq > s.event_seq;
$function$;

COMMENT ON FUNCTION billing.check_outbox_numbers IS
'Two events of one subscription carry one number, or one that was never given: consumers would drop or misorder them.';
