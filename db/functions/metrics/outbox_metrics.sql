CREATE OR REPLACE FUNCTION billing.outbox_metrics()
RETURNS SETOF billing.metric
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT 'billing_outbox_unpublished' AS name, '{}'::jsonb AS labels, count(*)::numeric AS value
    FROM (
        SELECT 1
        FROM billing.outbox_event AS e
        WHERE e.published_at IS NULL
        LIMIT 100000
    ) AS waiting
    UNION ALL
    SELECT 'billing_outbox_lag_seconds', '{}', coalesce(max(extract(epoch FROM clock_timestamp() - first.created_at)), 0)
    FROM billing.outbox_lease AS l
    CROSS JOIN LATERAL (
        SELECT e.created_at
        FROM billing.outbox_event AS e
        WHERE e.partition = l.partition AND e.published_at IS NULL
        ORDER BY e.outbox_event_id
        LIMIT 1
    ) AS first
    UNION ALL
    SELECT 'billing_outbox_blocked', '{}', count(*)
    FROM billing.outbox_event AS e
    WHERE e.published_at IS NULL AND e.publish_failures > 0 AND e.blocked_at IS NOT NULL
    UNION ALL
    SELECT 'billing_outbox_partitions_leased', '{}', count(*) FILTER (WHERE l.leased_until > clock_timestamp())
    FROM billing.outbox_lease AS l;
$function$;

COMMENT ON FUNCTION billing.outbox_metrics IS
'Events not yet published, the age of the oldest, those given up, and how many partitions a relay looks after.';
