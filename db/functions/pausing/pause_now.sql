CREATE OR REPLACE FUNCTION billing.pause_now(
    p_subscription billing.subscription,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     subscription, subscription_period, subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
-- An open pause is a row to infinity. At the very start of a period its row is replaced, and all of it is left. At the
-- very end nothing is left, and the next invoice comes when it resumes.
DECLARE
    c_at CONSTANT timestamptz := greatest(p_as_of, p_subscription.current_period_start);
    v_value billing.period_value;
BEGIN
    SELECT v.* INTO STRICT v_value FROM billing.value_of_period(p_subscription, c_at) AS v;

    PERFORM billing.cut_periods(p_subscription.customer_id, p_subscription.subscription_id, c_at);
    PERFORM billing.append_period(
        p_subscription.customer_id, p_subscription.subscription_id, c_at, 'infinity', 'PAUSED', NULL,
        p_subscription.event_seq + 1
    );
    UPDATE billing.subscription AS s
    SET status = 'PAUSED',
        current_period_kind = 'PAUSED',
        current_period_start = c_at,
        current_period_end = 'infinity',
        next_renewal_at = NULL,
        pause_at_period_end = false,
        paused_seconds_left = v_value.seconds_left,
        paused_seconds_total = v_value.seconds_total,
        paused_invoice_id = v_value.base_invoice_id,
        version = s.version + 1,
        event_seq = s.event_seq + 1
    WHERE s.customer_id = p_subscription.customer_id AND s.subscription_id = p_subscription.subscription_id;
    PERFORM billing.record_happening(p_subscription, 'SubscriptionPaused', NULL, true, p_as_of);
END;
$function$;

COMMENT ON FUNCTION billing.pause_now IS 'Ends the running period at an instant, keeps what is left of it, and opens a pause without end.';
