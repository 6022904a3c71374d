CREATE OR REPLACE FUNCTION billing_api.pause_subscription(
    p_subscription_id bigint,
    p_at_period_end boolean DEFAULT false,
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
-- Writes:     idempotency_key, subscription, subscription_period, subscription_event, outbox_event; where it is overdue
--             as renew_overdue
-- Raises:     SB101, SB104 p_as_of, SB201, SB302 already ended, SB303 not ACTIVE, SB304 version, SB305,
--             SB320 an invoice is open, SB321 a change waits for its payment, SB323 the period has not begun
-- Idempotent: yes, by p_idempotency_key; at period end also without
DECLARE
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_subscription billing.subscription;
BEGIN
    PERFORM billing.require_flag(p_at_period_end, 'p_at_period_end');
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'pause_subscription', p_idempotency_key,
        jsonb_build_object('subscriptionId', p_subscription_id, 'atPeriodEnd', p_at_period_end), false, p_as_of
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
    PERFORM billing.require_pausable(v_subscription, p_at_period_end, v_as_of);
    IF p_at_period_end THEN
        PERFORM billing.set_pause_flag(v_subscription, true, v_as_of);
    ELSE
        PERFORM billing.pause_now(v_subscription, v_as_of);
    END IF;

    RETURN QUERY SELECT r.* FROM billing.answer_subscription(
        'pause_subscription', v_customer_id, p_subscription_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.pause_subscription IS
'Pauses an active subscription now or at the end of its period: no access and no invoice until it resumes. Paid time that is left is kept. Refused while money is owed.';
