CREATE OR REPLACE FUNCTION billing_api.undo_cancel(
    p_subscription_id bigint,
    p_expected_version bigint DEFAULT NULL,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.subscription
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> subscription
-- Writes:     idempotency_key, subscription, subscription_event, outbox_event
-- Raises:     SB101 key, SB104 p_as_of, SB201 subscription, SB302 ended, or its boundary has passed, SB304 version,
--             SB305 key used with other arguments, SB315 no cancellation is scheduled
-- Idempotent: yes, by p_idempotency_key
DECLARE
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_subscription billing.subscription;
BEGIN
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'undo_cancel', p_idempotency_key,
        jsonb_build_object('subscriptionId', p_subscription_id), false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.subscription, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    v_subscription := billing.require_subscription(p_subscription_id);
    PERFORM billing.require_expected_version(v_subscription, p_expected_version);
    PERFORM billing.require_running(v_subscription);
    PERFORM billing.require_cancel_scheduled(v_subscription, v_as_of);

    UPDATE billing.subscription AS s
    SET cancel_at_period_end = false, version = s.version + 1, event_seq = s.event_seq + 1
    WHERE s.customer_id = v_customer_id AND s.subscription_id = p_subscription_id;
    PERFORM billing.record_happening(
        v_subscription, 'SubscriptionCancelScheduled', jsonb_build_object('effectiveAt', NULL), true, v_as_of
    );

    RETURN QUERY SELECT r.* FROM billing.answer_subscription(
        'undo_cancel', v_customer_id, p_subscription_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.undo_cancel IS
'Takes back a cancellation at period end, up to and including that boundary. The subscription renews as before.';
