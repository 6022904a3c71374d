CREATE FUNCTION billing_test.customer(
    p_external_ref text DEFAULT 'customer',
    p_currency text DEFAULT 'USD',
    p_time_zone text DEFAULT 'UTC',
    p_token text DEFAULT 'tok_ok'
)
RETURNS bigint
LANGUAGE plpgsql
AS $function$
DECLARE
    v_customer_id bigint;
BEGIN
    SELECT c.customer_id
    INTO STRICT v_customer_id
    FROM billing_api.create_customer(p_external_ref, p_currency, p_time_zone) AS c;
    IF p_token IS NOT NULL THEN
        PERFORM billing_test.gateway();
        PERFORM billing_api.add_payment_method(v_customer_id, 'sim', p_token);
    END IF;
    RETURN v_customer_id;
END;
$function$;

COMMENT ON FUNCTION billing_test.customer IS
'A new customer with a default payment method at the account sim; without one where p_token is NULL.';
