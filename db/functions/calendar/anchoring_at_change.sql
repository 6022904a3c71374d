CREATE OR REPLACE FUNCTION billing.anchoring_at_change(
    p_subscription billing.subscription,
    p_price_id bigint,
    p_at timestamptz
)
RETURNS billing.anchoring
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- A fixed term is never cut short: it ends with the first new period that reaches its end.
    SELECT ROW(
        a.anchor_at, NULL, 1,
        CASE
            WHEN p_subscription.term_end_at IS NOT NULL
            THEN billing.period_boundary(
                a.anchor_at, p_subscription.time_zone, pr.period_length,
                greatest(
                    1,
                    billing.periods_until(
                        a.anchor_at, p_subscription.time_zone, pr.period_length, p_subscription.term_end_at
                    )
                )
            )
        END
    )::billing.anchoring
    FROM billing.price AS pr
    CROSS JOIN LATERAL (SELECT p_at AT TIME ZONE p_subscription.time_zone AS anchor_at) AS a
    WHERE pr.price_id = p_price_id;
$function$;

COMMENT ON FUNCTION billing.anchoring_at_change IS
'What the boundaries of a subscription are counted from after a change of interval that takes effect at an instant.';
