CREATE OR REPLACE FUNCTION billing_api.remove_payment_method(
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
--             SB311 a charge is in flight, or it is the last one while money is owed
-- Idempotent: yes, by p_idempotency_key
DECLARE
    v_replay jsonb;
    v_as_of timestamptz;
    v_invoice_ids bigint[];
    v_removed billing.payment_method;
    v_default billing_api.payment_method;
BEGIN
    PERFORM billing.require_customer(p_customer_id);
    v_replay := billing.claim_idempotency_key(
        p_customer_id, 'remove_payment_method', p_idempotency_key,
        jsonb_build_object('paymentMethodId', p_payment_method_id), false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM billing.replayed_payment_method(v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    v_invoice_ids := billing.lock_open_invoices(p_customer_id, NULL);
    PERFORM billing.lock_customer(p_customer_id);
    v_removed := billing.require_payment_method(p_customer_id, p_payment_method_id);
    PERFORM billing.require_removable_method(v_removed);

    UPDATE billing.payment_method AS m
    SET removed_at = v_as_of, is_default = false
    WHERE m.customer_id = p_customer_id AND m.payment_method_id = p_payment_method_id;
    IF v_removed.is_default THEN
        PERFORM billing.make_default_method(p_customer_id, n.payment_method_id)
        FROM (
            SELECT m.payment_method_id
            FROM billing.payment_method AS m
            WHERE m.customer_id = p_customer_id AND m.removed_at IS NULL
            ORDER BY m.created_at DESC, m.payment_method_id DESC
            LIMIT 1
        ) AS n;
    END IF;
    PERFORM billing.follow_payment_method(p_customer_id, v_invoice_ids, NULL, v_as_of);

    SELECT m.*
    INTO v_default
    FROM billing_api.payment_method AS m
    WHERE m.customer_id = p_customer_id AND m.is_default;
    IF found THEN
        RETURN NEXT v_default;
        PERFORM billing.store_payment_method_response(
            'remove_payment_method', p_customer_id, p_idempotency_key, v_default
        );
    ELSE
        PERFORM billing.store_response(p_customer_id, 'remove_payment_method', p_idempotency_key, '{}');
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing_api.remove_payment_method IS
'Removes a payment method and returns the one that is the default now; no row where there is none. The newest that remains takes the place of a removed default.';
