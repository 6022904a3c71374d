CREATE OR REPLACE FUNCTION billing_api.resume_subscription(
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
-- Locks:      idempotency_key -> subscription -> credit_balance
-- Writes:     idempotency_key, subscription, subscription_period, subscription_event, outbox_event; as renew_claimed where
--             no paid time is left
-- Raises:     SB104 p_as_of, SB201, SB302 already ended, SB303 neither paused nor to be paused, SB304 version, SB305
-- Idempotent: yes, by p_idempotency_key
DECLARE
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_subscription billing.subscription;
BEGIN
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'resume_subscription', p_idempotency_key,
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
    v_subscription := billing.renew_overdue(p_subscription_id, v_as_of);
    PERFORM billing.require_running(v_subscription);
    IF v_subscription.status = 'PAUSED' THEN
        PERFORM billing.resume_now(v_subscription, v_as_of);
    ELSIF v_subscription.pause_at_period_end THEN
        PERFORM billing.set_pause_flag(v_subscription, false, v_as_of);
    ELSE
        RAISE EXCEPTION USING
            ERRCODE = 'SB303',
            MESSAGE = format('subscription %s is %s, not paused', p_subscription_id, v_subscription.status);
    END IF;

    RETURN QUERY SELECT r.* FROM billing.answer_subscription(
        'resume_subscription', v_customer_id, p_subscription_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.resume_subscription IS
'Resumes a paused subscription with the paid time that was left, and moves its anchor; or takes back a pause that has not begun. Where no paid time is left, the next period is opened and invoiced now.';
