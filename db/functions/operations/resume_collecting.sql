CREATE OR REPLACE FUNCTION billing_ops.resume_collecting(
    p_gateway_account text DEFAULT NULL
)
RETURNS timestamptz
LANGUAGE sql
SECURITY DEFINER
SET search_path = ''
AS $function$
    -- Locks:      gateway_account or operator_switch, one row
    -- Writes:     gateway_account or operator_switch
    -- Raises:     SB206 gateway account
    -- Idempotent: yes
    SELECT billing.switch_collecting(p_gateway_account, false);
$function$;

COMMENT ON FUNCTION billing_ops.resume_collecting IS
'Lets collecting go on through a gateway account; NULL = lifts the stop of all, not those of single accounts. Returns NULL: it is not stopped.';
