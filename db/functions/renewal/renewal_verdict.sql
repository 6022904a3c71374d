CREATE OR REPLACE FUNCTION billing.renewal_verdict(
    p_subscription billing.subscription,
    p_policy billing.dunning_policy,
    p_can_pay boolean,
    OUT verdict text,
    OUT reason text
)
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $function$
    -- In this order: a cancellation beats everything, the end of a term beats a pause.
    SELECT CASE
        WHEN p_subscription.cancel_at_period_end THEN 'CANCEL'
        WHEN p_subscription.current_period_kind = 'TRIAL' AND NOT p_can_pay THEN 'CANCEL'
        WHEN p_subscription.current_period_end >= p_subscription.term_end_at
        THEN CASE p_subscription.status WHEN 'PAST_DUE' THEN 'REST' ELSE 'EXPIRE' END
        WHEN p_subscription.pause_at_period_end AND p_subscription.status = 'ACTIVE' THEN 'PAUSE'
        WHEN p_subscription.status = 'PAST_DUE' AND p_policy.past_due_renewal = 'HOLD' THEN 'REST'
        ELSE 'RENEW'
    END,
    CASE
        WHEN p_subscription.cancel_at_period_end THEN 'period_end'
        WHEN p_subscription.current_period_kind = 'TRIAL' AND NOT p_can_pay THEN 'no_payment_method'
        WHEN p_subscription.current_period_end >= p_subscription.term_end_at THEN 'term_end'
    END;
$function$;

COMMENT ON FUNCTION billing.renewal_verdict IS
'What becomes of a subscription at its boundary: CANCEL, EXPIRE, PAUSE, REST or RENEW, and the reason of an end.';
