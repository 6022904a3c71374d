CREATE OR REPLACE FUNCTION billing_api.add_payment_method(
    p_customer_id bigint,
    p_gateway_account text,
    p_token text,
    p_brand text DEFAULT NULL,
    p_last4 text DEFAULT NULL,
    p_exp_month integer DEFAULT NULL,
    p_exp_year integer DEFAULT NULL,
    p_fingerprint text DEFAULT NULL,
    p_make_default boolean DEFAULT true,
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
-- Raises:     SB101, SB104 p_as_of, SB105 card number, SB202 customer, SB206 gateway account,
--             SB305 key used with other arguments, SB314 customer closed
-- Idempotent: yes, by p_idempotency_key, and by token and fingerprint
DECLARE
    v_customer billing.customer := billing.require_customer(p_customer_id);
    v_account billing.gateway_account := billing.require_gateway_account(p_gateway_account);
    v_replay jsonb;
    v_as_of timestamptz;
    v_invoice_ids bigint[];
    v_new billing.payment_method;
    v_method billing_api.payment_method;
BEGIN
    PERFORM billing.require_text(p_token, 'p_token', 255);
    PERFORM billing.require_card_details(p_brand, p_last4, p_exp_month, p_exp_year, p_fingerprint);
    PERFORM billing.require_flag(p_make_default, 'p_make_default');
    v_replay := billing.claim_idempotency_key(
        p_customer_id, 'add_payment_method', p_idempotency_key,
        jsonb_build_object(
            'gatewayAccount', p_gateway_account, 'token', p_token, 'brand', p_brand, 'last4', p_last4,
            'expMonth', p_exp_month, 'expYear', p_exp_year, 'fingerprint', p_fingerprint,
            'makeDefault', p_make_default
        ),
        false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM billing.replayed_payment_method(v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    PERFORM billing.require_customer_status(v_customer, '{ACTIVE,SUSPENDED}');
    v_invoice_ids := billing.lock_open_invoices(p_customer_id, NULL);
    PERFORM billing.lock_customer(p_customer_id);

    v_new.customer_id := p_customer_id;
    v_new.gateway_account_id := v_account.gateway_account_id;
    v_new.token := p_token;
    v_new.brand := p_brand;
    v_new.last4 := p_last4;
    v_new.exp_month := p_exp_month::smallint;
    v_new.exp_year := p_exp_year::smallint;
    v_new.fingerprint := p_fingerprint;
    v_new.created_at := v_as_of;
    v_new.payment_method_id := billing.store_payment_method(v_new);
    IF p_make_default THEN
        PERFORM billing.make_default_method(p_customer_id, v_new.payment_method_id);
    END IF;
    PERFORM billing.follow_payment_method(p_customer_id, v_invoice_ids, v_new.payment_method_id, v_as_of);

    SELECT m.*
    INTO STRICT v_method
    FROM billing_api.payment_method AS m
    WHERE m.customer_id = p_customer_id AND m.payment_method_id = v_new.payment_method_id;
    PERFORM billing.store_payment_method_response('add_payment_method', p_customer_id, p_idempotency_key, v_method);
    RETURN NEXT v_method;
END;
$function$;

COMMENT ON FUNCTION billing_api.add_payment_method IS
'Stores a payment method by its gateway token, never a card number. Open invoices that it is to pay become due at once, unless a charge is in flight.';
