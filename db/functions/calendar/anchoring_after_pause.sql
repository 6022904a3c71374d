CREATE OR REPLACE FUNCTION billing.anchoring_after_pause(
    p_subscription billing.subscription,
    p_end timestamptz
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
    -- The end of what was left becomes boundary 0. Of a fixed term as many periods follow as before.
    SELECT ROW(
        a.anchor_at, NULL, 0,
        billing.period_boundary(
            a.anchor_at, p_subscription.time_zone, pr.period_length,
            billing.periods_until(
                p_subscription.anchor_at, p_subscription.time_zone, pr.period_length, p_subscription.term_end_at
            ) - p_subscription.period_no
        )
    )::billing.anchoring
    FROM billing.price AS pr
    CROSS JOIN LATERAL (SELECT p_end AT TIME ZONE p_subscription.time_zone AS anchor_at) AS a
    WHERE pr.price_id = p_subscription.price_id;
$function$;

COMMENT ON FUNCTION billing.anchoring_after_pause IS
'What the boundaries of a subscription are counted from once what was left before a pause is used up.';
