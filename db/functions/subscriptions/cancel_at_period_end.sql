CREATE OR REPLACE FUNCTION billing.cancel_at_period_end(
    p_subscription billing.subscription,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      as renew_overdue, void_overtaken_changes and cancel_now; the caller holds the subscription
-- Writes:     subscription, subscription_event, outbox_event; as void_overtaken_changes; where it is overdue as renew_overdue
-- Raises:     what renew_overdue raises, SB302 its term ended meanwhile
-- Idempotent: yes: a flag that is set stays as it is
-- Overdue boundaries come first, so that the flag ends the period that runs at p_as_of; one at which it has paused leaves
-- no period to wait for. A change that waits for its payment is void: who leaves buys nothing more.
DECLARE
    v_subscription billing.subscription := p_subscription;
BEGIN
    IF v_subscription.cancel_at_period_end THEN
        RETURN;
    END IF;
    v_subscription := billing.renew_overdue(v_subscription.subscription_id, p_as_of);
    PERFORM billing.require_running(v_subscription);
    IF v_subscription.status = 'PAUSED' THEN
        PERFORM billing.cancel_now(v_subscription, 'NONE', p_as_of);
        RETURN;
    END IF;
    PERFORM billing.void_overtaken_changes(
        ARRAY[ROW(v_subscription.customer_id, v_subscription.subscription_id)::billing.subscription_key], p_as_of
    );
    v_subscription := billing.require_subscription(v_subscription.subscription_id);

    UPDATE billing.subscription AS s
    SET cancel_at_period_end = true, version = s.version + 1, event_seq = s.event_seq + 1
    WHERE s.customer_id = v_subscription.customer_id AND s.subscription_id = v_subscription.subscription_id;
    PERFORM billing.record_happening(
        v_subscription, 'SubscriptionCancelScheduled',
        jsonb_build_object('effectiveAt', billing.to_rfc3339(v_subscription.current_period_end)), true, p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.cancel_at_period_end IS
'Flags a subscription to end at the end of the period that runs, and tells the world once.';
