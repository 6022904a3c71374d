CREATE OR REPLACE FUNCTION billing.check_current_period(
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
        'current_period', 'BROKEN', s.customer_id, format('subscription %s', s.subscription_id),
        format('current period ends at %s, timeline at %s', s.current_period_end, p.period_end)
    FROM billing.subscription AS s
    LEFT JOIN LATERAL (
        SELECT x.kind, x.period_start, x.period_end
        FROM billing.subscription_period AS x
        WHERE x.customer_id = s.customer_id AND x.subscription_id = s.subscription_id
        ORDER BY x.period_start DESC
        LIMIT 1
    ) AS p ON true
    WHERE (p_customers IS NULL OR s.customer_id = ANY (p_customers))
      AND (s.current_period_kind, s.current_period_start, s.current_period_end)
        IS DISTINCT FROM (p.kind, p.period_start, p.period_end);
END;
$function$;

COMMENT ON FUNCTION billing.check_current_period IS
'The subscription says another current period than its timeline ends with: the next renewal would bill the wrong time.';
