CREATE OR REPLACE FUNCTION billing.check_status_folds(
    p_customers bigint[] DEFAULT NULL
)
RETURNS SETOF billing.violation
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
SET plan_cache_mode = force_custom_plan
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
BEGIN
    RETURN QUERY
    SELECT
        'status_folds', 'BROKEN', s.customer_id, format('subscription %s', s.subscription_id),
        format('status %s, log ends with %s', s.status, coalesce(e.to_status, 'nothing'))
    FROM billing.subscription AS s
    LEFT JOIN LATERAL (
        SELECT x.to_status
        FROM billing.subscription_event AS x
        WHERE x.customer_id = s.customer_id AND x.subscription_id = s.subscription_id AND x.to_status IS NOT NULL
        ORDER BY x.event_seq DESC
        LIMIT 1
    ) AS e ON true
    WHERE e.to_status IS DISTINCT FROM s.status AND (p_customers IS NULL OR s.customer_id = ANY (p_customers));
END;
$function$;

COMMENT ON FUNCTION billing.check_status_folds IS
'The last change of status in the log is not the status of the row: the log does not explain the state.';
