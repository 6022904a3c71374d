CREATE FUNCTION billing_test.gateway(
    p_code text DEFAULT 'sim'
)
RETURNS integer
LANGUAGE plpgsql
AS $function$
DECLARE
    v_gateway_account_id integer;
BEGIN
    SELECT a.gateway_account_id INTO v_gateway_account_id FROM billing.gateway_account AS a WHERE a.code = p_code;
    IF v_gateway_account_id IS NULL THEN
        SELECT a.gateway_account_id
        INTO STRICT v_gateway_account_id
        FROM billing_ops.create_gateway_account(p_code, 'simulated') AS a;
        PERFORM billing_ops.set_gateway_rate(p_code, 'charge', 200);
    END IF;
    RETURN v_gateway_account_id;
END;
$function$;

COMMENT ON FUNCTION billing_test.gateway IS 'A gateway account by this code, made where it is missing.';
