CREATE OR REPLACE FUNCTION billing.replayed_payment_method(
    p_response jsonb
)
RETURNS SETOF billing_api.payment_method
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Brand, digits and expiry are not stored with the answer, so that they can be erased; they come from the method.
    SELECT r.*
    FROM billing_api.payment_method AS m
    CROSS JOIN LATERAL jsonb_populate_record(m, p_response) AS r
    WHERE m.payment_method_id = (p_response ->> 'payment_method_id')::bigint
      AND m.customer_id = (p_response ->> 'customer_id')::bigint;
$function$;

COMMENT ON FUNCTION billing.replayed_payment_method IS
'The stored answer of a call that returned a payment method, completed by what is not stored with it.';
