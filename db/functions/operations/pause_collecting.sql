CREATE OR REPLACE FUNCTION billing_ops.pause_collecting(
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
    SELECT billing.switch_collecting(p_gateway_account, true);
$function$;

COMMENT ON FUNCTION billing_ops.pause_collecting IS
'Starts no more charges through a gateway account; NULL = through none at all. What is in flight is settled. Returns since when it is stopped.';
