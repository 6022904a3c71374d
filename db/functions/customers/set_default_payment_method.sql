CREATE OR REPLACE FUNCTION billing_api.set_default_payment_method(
    p_customer_id bigint,
    p_payment_method_id bigint,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.payment_method
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> invoice (open ones of the customer) -> customer
-- Writes:     idempotency_key, payment_method, invoice
-- Raises:     SB101 key, SB104 p_as_of, SB202 customer, SB205 payment method, SB305 key used with other arguments,
--             SB314 customer closed
-- Idempotent: yes
DECLARE
    v_customer billing.customer := billing.require_customer(p_customer_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_invoice_ids bigint[];
    v_chosen billing.payment_method;
    v_method billing_api.payment_method;
BEGIN
    v_replay := billing.claim_idempotency_key(
        p_customer_id, 'set_default_payment_method', p_idempotency_key,
        jsonb_build_object('paymentMethodId', p_payment_method_id), false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM billing.replayed_payment_method(v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    PERFORM billing.require_customer_status(v_customer, '{ACTIVE,SUSPENDED}');
    v_invoice_ids := billing.lock_open_invoices(p_customer_id, NULL);
    PERFORM billing.lock_customer(p_customer_id);
    v_chosen := billing.require_payment_method(p_customer_id, p_payment_method_id);
    IF NOT v_chosen.is_default THEN
        PERFORM billing.make_default_method(p_customer_id, p_payment_method_id);
        PERFORM billing.follow_payment_method(p_customer_id, v_invoice_ids, p_payment_method_id, v_as_of);
    END IF;

    SELECT m.*
    INTO STRICT v_method
    FROM billing_api.payment_method AS m
    WHERE m.customer_id = p_customer_id AND m.payment_method_id = p_payment_method_id;
    PERFORM billing.store_payment_method_response(
        'set_default_payment_method', p_customer_id, p_idempotency_key, v_method
    );
    RETURN NEXT v_method;
END;
$function$;

COMMENT ON FUNCTION billing_api.set_default_payment_method IS
'Makes a payment method the default of its customer. Open invoices that it is to pay now become due at once, unless a charge is in flight.';
