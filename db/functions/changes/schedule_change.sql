CREATE OR REPLACE FUNCTION billing.schedule_change(
    p_subscription billing.subscription,
    p_change billing.plan_change,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     subscription, subscription_event
-- Raises:     nothing of its own
-- Idempotent: yes
BEGIN
    UPDATE billing.subscription AS s
    SET pending_price_id = p_change.to_price_id,
        pending_quantity = p_change.to_quantity,
        pending_from = p_as_of,
        version = s.version + 1,
        event_seq = s.event_seq + 1
    WHERE s.customer_id = p_change.customer_id AND s.subscription_id = p_change.subscription_id;
    PERFORM billing.record_happening(
        p_subscription, 'SubscriptionChangeScheduled',
        jsonb_build_object('pendingPlanCode', p_change.to_plan_code, 'pendingQuantity', p_change.to_quantity),
        false, p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.schedule_change IS
'Sets a change to take effect at the next boundary, in place of one that was set before.';
