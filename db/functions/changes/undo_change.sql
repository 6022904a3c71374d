CREATE OR REPLACE FUNCTION billing_api.undo_change(
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
-- Locks:      idempotency_key -> subscription -> invoice -> credit_balance
-- Writes:     idempotency_key, subscription, subscription_change, invoice, credit_entry, credit_balance,
--             subscription_event, outbox_event
-- Raises:     SB104 p_as_of, SB201, SB302 already ended, SB304 version, SB305, SB306 its payment is in flight,
--             SB322 nothing to take back
-- Idempotent: yes, by p_idempotency_key
DECLARE
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_subscription billing.subscription;
BEGIN
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'undo_change', p_idempotency_key, jsonb_build_object('subscriptionId', p_subscription_id),
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
    v_subscription := billing.renew_overdue(p_subscription_id, v_as_of);
    PERFORM billing.require_running(v_subscription);
    PERFORM billing.take_back_change(v_subscription, v_as_of);

    RETURN QUERY SELECT r.* FROM billing.answer_subscription(
        'undo_change', v_customer_id, p_subscription_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.undo_change IS
'Takes back a change that has not taken effect: one that waits for its payment, else one set for the end of the period.';
