CREATE OR REPLACE FUNCTION billing_api.renew_now(
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
-- Writes:     idempotency_key; as renew_claimed
-- Raises:     SB104 p_as_of, SB201, SB302 already ended, SB303 not ACTIVE, or to end or pause at the boundary, SB304, SB305,
--             SB320 an invoice is open, SB321 a change waits for its payment, SB323 renewed early already
-- Idempotent: yes, by p_idempotency_key
DECLARE
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_subscription billing.subscription;
BEGIN
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'renew_now', p_idempotency_key, jsonb_build_object('subscriptionId', p_subscription_id),
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
    PERFORM billing.require_renewable_early(v_subscription, v_as_of);
    PERFORM billing.renew_claimed(
        ARRAY[ROW(v_subscription.customer_id, v_subscription.subscription_id)::billing.subscription_key], v_as_of, NULL
    );

    RETURN QUERY SELECT r.* FROM billing.answer_subscription(
        'renew_now', v_customer_id, p_subscription_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.renew_now IS
'Opens and invoices the next period before the current one has ended, at most one ahead. current_period_start then lies in the future.';
