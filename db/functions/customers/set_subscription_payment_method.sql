CREATE OR REPLACE FUNCTION billing_api.set_subscription_payment_method(
    p_subscription_id bigint,
    p_payment_method_id bigint,
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
-- Locks:      idempotency_key -> subscription -> invoice (its open ones)
-- Writes:     idempotency_key, subscription, invoice, subscription_event
-- Raises:     SB101 key, SB104 p_as_of, SB201 subscription, SB205 payment method, SB302 ended, SB304 version,
--             SB305 key used with other arguments
-- Idempotent: yes
-- NULL for the method means: follow the default of the customer.
DECLARE
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_subscription billing.subscription;
    v_invoice_ids bigint[];
    v_usable_id bigint;
BEGIN
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'set_subscription_payment_method', p_idempotency_key,
        jsonb_build_object('subscriptionId', p_subscription_id, 'paymentMethodId', p_payment_method_id),
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
    IF p_payment_method_id IS NOT NULL THEN
        PERFORM billing.require_payment_method(v_customer_id, p_payment_method_id);
    END IF;

    IF v_subscription.payment_method_id IS DISTINCT FROM p_payment_method_id THEN
        UPDATE billing.subscription AS s
        SET payment_method_id = p_payment_method_id, version = s.version + 1, event_seq = s.event_seq + 1
        WHERE s.customer_id = v_customer_id AND s.subscription_id = p_subscription_id;
        v_invoice_ids := billing.lock_open_invoices(v_customer_id, p_subscription_id);
        SELECT m.payment_method_id
        INTO v_usable_id
        FROM billing.usable_method(v_customer_id, p_payment_method_id) AS m;
        PERFORM billing.follow_payment_method(v_customer_id, v_invoice_ids, v_usable_id, v_as_of);
        PERFORM billing.record_happening(
            v_subscription, 'PaymentMethodChosen', jsonb_build_object('paymentMethodId', p_payment_method_id),
            false, v_as_of
        );
    END IF;
    RETURN QUERY SELECT r.* FROM billing.answer_subscription(
        'set_subscription_payment_method', v_customer_id, p_subscription_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.set_subscription_payment_method IS
'Chooses the payment method of a subscription; NULL = the default of its customer. Its open invoices become due at once, unless a charge is in flight.';
