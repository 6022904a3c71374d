CREATE OR REPLACE FUNCTION billing.check_calendar(
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
-- Counted back from the current boundary for as long as the anchor has stood; before that another anchor counted.
BEGIN
    RETURN QUERY
    SELECT
        'calendar', 'BROKEN', x.customer_id, format('subscription %s', x.subscription_id),
        format('a period ends at %s, boundary %s of its anchor is %s', x.period_end, x.boundary_no, b.boundary)
    FROM (
        SELECT
            s.customer_id, s.subscription_id, s.anchor_at, s.time_zone, pr.period_length, p.kind, p.period_end,
            s.period_no + 1 - row_number() OVER (
                PARTITION BY s.customer_id, s.subscription_id ORDER BY p.period_start DESC
            )::integer AS boundary_no,
            bool_and(p.kind = 'BILLED') OVER (
                PARTITION BY s.customer_id, s.subscription_id ORDER BY p.period_start DESC
            ) AS of_this_anchor
        FROM billing.subscription AS s
        INNER JOIN billing.price AS pr ON pr.price_id = s.price_id
        INNER JOIN billing.subscription_period AS p
            ON p.customer_id = s.customer_id AND p.subscription_id = s.subscription_id
        WHERE s.status IN ('TRIALING', 'ACTIVE', 'PAST_DUE')
          AND (p_customers IS NULL OR s.customer_id = ANY (p_customers))
    ) AS x
    CROSS JOIN LATERAL billing.period_boundary(
        x.anchor_at, x.time_zone, x.period_length, x.boundary_no
    ) AS b (boundary)
    WHERE x.of_this_anchor AND x.boundary_no > 0 AND b.boundary <> x.period_end;
END;
$function$;

COMMENT ON FUNCTION billing.check_calendar IS
'A billed period that does not end on a boundary of its anchor: there are more or fewer periods than the calendar has, and the customer is billed for more or less than a period.';
