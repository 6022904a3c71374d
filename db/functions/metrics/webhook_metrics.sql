CREATE OR REPLACE FUNCTION billing.webhook_metrics()
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
    SELECT 'billing_webhooks_waiting' AS name, jsonb_build_object('status', s.status) AS labels, count(w.status)::numeric AS value
    FROM (VALUES ('RECEIVED'), ('UNMATCHED')) AS s (status)
    LEFT JOIN (
        SELECT e.status
        FROM billing.webhook_event AS e
        WHERE e.status IN ('RECEIVED', 'UNMATCHED')
        LIMIT 100000
    ) AS w ON w.status = s.status
    GROUP BY s.status
    UNION ALL
    SELECT 'billing_webhooks_newest', jsonb_build_object('status', s.status), count(newest.status)
    FROM (VALUES
        ('RECEIVED'), ('APPLIED'), ('DUPLICATE'), ('IGNORED'), ('LOOKUP'), ('UNMATCHED'), ('REJECTED'), ('CASE')
    ) AS s (status)
    LEFT JOIN (
        SELECT e.status
        FROM billing.webhook_event AS e
        ORDER BY e.webhook_event_id DESC
        LIMIT 20000
    ) AS newest ON newest.status = s.status
    GROUP BY s.status;
$function$;

COMMENT ON FUNCTION billing.webhook_metrics IS
'Gateway events: those that wait to be processed, and what became of the newest 20,000.';
