CREATE OR REPLACE FUNCTION billing.set_pause_flag(
    p_subscription billing.subscription,
    p_flag boolean,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     subscription, subscription_event
-- Raises:     nothing
-- Idempotent: yes
BEGIN
    IF p_subscription.pause_at_period_end = p_flag THEN
        RETURN;
    END IF;
    UPDATE billing.subscription AS s
    SET pause_at_period_end = p_flag, version = s.version + 1, event_seq = s.event_seq + 1
    WHERE s.customer_id = p_subscription.customer_id AND s.subscription_id = p_subscription.subscription_id;
    PERFORM billing.record_happening(
        p_subscription, CASE WHEN p_flag THEN 'SubscriptionPauseScheduled' ELSE 'SubscriptionPauseWithdrawn' END,
        NULL, false, p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.set_pause_flag IS 'Sets or clears the flag that pauses a subscription at the end of its period.';
