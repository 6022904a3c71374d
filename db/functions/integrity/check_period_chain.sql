CREATE OR REPLACE FUNCTION billing.check_period_chain(
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
        'period_chain', 'BROKEN', p.customer_id, format('subscription %s', p.subscription_id),
        format('period from %s does not start where one ends', p.period_start)
    FROM (
        SELECT
            t.customer_id, t.subscription_id, t.period_start, t.prev_end,
            lag(t.period_end) OVER (PARTITION BY t.customer_id, t.subscription_id ORDER BY t.period_start) AS last_end
        FROM billing.subscription_period AS t
        WHERE (p_customers IS NULL OR t.customer_id = ANY (p_customers))
    ) AS p
    WHERE p.last_end IS DISTINCT FROM p.prev_end OR (p.last_end IS NOT NULL AND p.last_end <> p.period_start);
END;
$function$;

COMMENT ON FUNCTION billing.check_period_chain IS
'A gap, an overlap or a second beginning in a service timeline: a customer would be served for free or billed twice.';
