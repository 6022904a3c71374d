CREATE OR REPLACE FUNCTION billing_ops.set_gateway_rate(
    p_account text,
    p_operation text,
    p_per_second integer
)
RETURNS SETOF billing.gateway_rate
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     gateway_rate
-- Raises:     SB101, SB206 gateway account
-- Idempotent: yes
DECLARE
    v_account billing.gateway_account := billing.require_gateway_account(p_account);
    v_rate billing.gateway_rate;
BEGIN
    PERFORM billing.require_choice(p_operation, 'p_operation', '{charge,look_up,refund}');
    PERFORM billing.require_integer(p_per_second, 'p_per_second', 2, 100000);
    INSERT INTO billing.gateway_rate (gateway_account_id, operation, per_second)
    VALUES (v_account.gateway_account_id, p_operation, p_per_second)
    ON CONFLICT ON CONSTRAINT gateway_rate_pkey DO UPDATE SET per_second = excluded.per_second
    RETURNING * INTO STRICT v_rate;
    RETURN NEXT v_rate;
END;
$function$;

COMMENT ON FUNCTION billing_ops.set_gateway_rate IS
'Sets how many calls of one operation a gateway account takes in any one second. Workers follow within seconds.';
