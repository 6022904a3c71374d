CREATE OR REPLACE FUNCTION billing.anchoring_at_renewal(
    p_subscription billing.subscription,
    p_price_id bigint,
    p_boundary timestamptz
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
    -- The same interval changes nothing. period_no is that of the period before.
    SELECT CASE
        WHEN billing.is_same_length(o.period_length, n.period_length)
        THEN ROW(
            p_subscription.anchor_at, p_subscription.anchor_day, p_subscription.period_no, p_subscription.term_end_at
        )::billing.anchoring
        WHEN p_subscription.current_period_kind = 'TRIAL'
        THEN billing.anchoring_after_trial(p_subscription, p_price_id, p_boundary)
        ELSE ROW(c.anchor_at, c.anchor_day, c.period_no - 1, c.term_end_at)::billing.anchoring
    END
    FROM billing.price AS o
    CROSS JOIN billing.price AS n
    CROSS JOIN LATERAL billing.anchoring_at_change(p_subscription, p_price_id, p_boundary) AS c
    WHERE o.price_id = p_subscription.price_id AND n.price_id = p_price_id;
$function$;

COMMENT ON FUNCTION billing.anchoring_at_renewal IS
'What the boundaries of a subscription are counted from that is renewed at a boundary into a price of perhaps another interval.';
