CREATE OR REPLACE FUNCTION billing.store_payment_method_response(
    p_operation text,
    p_customer_id bigint,
    p_key text,
    p_method billing_api.payment_method
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; claim_idempotency_key came before
-- Writes:     idempotency_key
-- Raises:     SB901 the key was not claimed
-- Idempotent: yes
BEGIN
    PERFORM billing.store_response(
        p_customer_id, p_operation, p_key,
        to_jsonb(p_method) - '{brand,last4,exp_month,exp_year}'::text[]
    );
END;
$function$;

COMMENT ON FUNCTION billing.store_payment_method_response IS
'Stores the answer of a call that returned a payment method, without brand, digits and expiry.';
