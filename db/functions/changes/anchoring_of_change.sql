CREATE OR REPLACE FUNCTION billing.anchoring_of_change(
    p_subscription billing.subscription,
    p_change billing.subscription_change
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
    -- A new period brings its own anchor; a trial ends where it did, but what follows may be of another length.
    SELECT CASE
        WHEN p_change.opens_period
        THEN billing.anchoring_at_change(p_subscription, p_change.to_price_id, p_change.effective_at)
        WHEN p_subscription.current_period_kind = 'TRIAL'
        THEN billing.anchoring_after_trial(p_subscription, p_change.to_price_id, p_subscription.current_period_end)
        ELSE ROW(
            p_subscription.anchor_at, p_subscription.anchor_day, p_subscription.period_no, p_subscription.term_end_at
        )::billing.anchoring
    END;
$function$;

COMMENT ON FUNCTION billing.anchoring_of_change IS
'What the boundaries of a subscription are counted from once a change has taken effect.';
