CREATE OR REPLACE FUNCTION billing.check_calendar()
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
        'calendar', 'BROKEN', s.customer_id, format('subscription %s', s.subscription_id),
        format('current period ends at %s, boundary %s is %s', s.current_period_end, s.period_no, b.boundary)
    FROM billing.subscription AS s
    INNER JOIN billing.price AS pr ON pr.price_id = s.price_id
    CROSS JOIN LATERAL billing.period_boundary(s.anchor_at, s.time_zone, pr.period_length, s.period_no) AS b (boundary)
    WHERE s.status IN ('TRIALING', 'ACTIVE', 'PAST_DUE')
      AND s.current_period_kind = 'BILLED'
      AND b.boundary <> s.current_period_end;
$function$;

COMMENT ON FUNCTION billing.check_calendar IS
'The current period does not end on a boundary of its anchor: the customer is billed for more or less than a period.';
