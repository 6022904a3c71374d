CREATE OR REPLACE FUNCTION billing_api.cancel_subscription(
    p_subscription_id bigint,
    p_at_period_end boolean DEFAULT false,
    p_unused_time text DEFAULT 'NONE',
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
-- Locks:      idempotency_key -> subscription -> invoice -> credit_balance
-- Writes:     idempotency_key, subscription, subscription_period, invoice, credit_entry, credit_balance,
--             subscription_event, outbox_event
-- Raises:     SB101, SB104 p_as_of, SB201 subscription, SB302 already ended, SB304 version,
--             SB305 key used with other arguments
-- Idempotent: yes, by p_idempotency_key; at period end also without
-- Only a subscription that runs and is paid can go on to the end of its period; any other ends now.
DECLARE
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_subscription billing.subscription;
BEGIN
    PERFORM billing.require_cancel_arguments(p_at_period_end, p_unused_time);
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'cancel_subscription', p_idempotency_key,
        jsonb_build_object(
            'subscriptionId', p_subscription_id, 'atPeriodEnd', p_at_period_end, 'unusedTime', p_unused_time
        ),
        false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.subscription, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    v_subscription := billing.require_subscription(p_subscription_id);
    PERFORM billing.require_expected_version(v_subscription, p_expected_version);
    PERFORM billing.require_running(v_subscription);
    IF p_at_period_end AND v_subscription.status IN ('TRIALING', 'ACTIVE') THEN
        PERFORM billing.cancel_at_period_end(v_subscription, v_as_of);
    ELSE
        PERFORM billing.cancel_now(v_subscription, p_unused_time, v_as_of);
    END IF;

    RETURN QUERY SELECT r.* FROM billing.answer_subscription(
        'cancel_subscription', v_customer_id, p_subscription_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.cancel_subscription IS
'Cancels a subscription now, or at the end of the period that runs; one that is past due, paused or not paid yet always now. Open invoices become void. p_unused_time CREDIT gives paid time back that will not be used.';
