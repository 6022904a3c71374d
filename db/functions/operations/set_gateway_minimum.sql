CREATE OR REPLACE FUNCTION billing_ops.set_gateway_minimum(
    p_account text,
    p_currency text,
    p_amount bigint
)
RETURNS SETOF billing.gateway_minimum
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     gateway_minimum
-- Raises:     SB101, SB102 currency, SB106 amount, SB206 gateway account
-- Idempotent: yes
DECLARE
    v_account billing.gateway_account := billing.require_gateway_account(p_account);
    v_minimum billing.gateway_minimum;
BEGIN
    PERFORM billing.require_currency(p_currency);
    PERFORM billing.require_amount(p_amount, 'p_amount', 1);
    INSERT INTO billing.gateway_minimum (gateway_account_id, currency, amount)
    VALUES (v_account.gateway_account_id, p_currency, p_amount)
    ON CONFLICT ON CONSTRAINT gateway_minimum_pkey DO UPDATE SET amount = excluded.amount
    RETURNING * INTO STRICT v_minimum;
    RETURN NEXT v_minimum;
END;
$function$;

COMMENT ON FUNCTION billing_ops.set_gateway_minimum IS
'Sets the smallest amount, in minor units, that a gateway account charges in a currency. What is less is carried to the next invoice.';
