CREATE OR REPLACE FUNCTION billing_worker.metrics()
RETURNS SETOF billing.metric
LANGUAGE sql
STABLE
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT m.* FROM billing.renewal_metrics() AS m
    UNION ALL
    SELECT m.* FROM billing.collection_metrics() AS m
    UNION ALL
    SELECT m.* FROM billing.attempt_metrics() AS m
    UNION ALL
    SELECT m.* FROM billing.webhook_metrics() AS m
    UNION ALL
    SELECT m.* FROM billing.outbox_metrics() AS m
    UNION ALL
    SELECT
        'billing_stopped' AS name,
        jsonb_build_object('what', lower(w.name)) AS labels,
        (w.thrown_at IS NOT NULL)::integer::numeric AS value
    FROM billing.operator_switch AS w
    UNION ALL
    SELECT 'billing_open_cases', jsonb_build_object('kind', c.kind), count(*)
    FROM billing.reconciliation_case AS c
    WHERE c.resolved_at IS NULL
    GROUP BY c.kind;
$function$;

COMMENT ON FUNCTION billing_worker.metrics IS
'How things stand, as figures for a monitoring system. Reads what waits, by index and at most 100,000 rows of each, and the newest 20,000 of what has passed: it takes milliseconds, however much there is.';
