CREATE OR REPLACE FUNCTION billing_ops.pause_renewing()
RETURNS timestamptz
LANGUAGE sql
SECURITY DEFINER
SET search_path = ''
AS $function$
    -- Locks:      operator_switch, one row
    -- Writes:     operator_switch
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT billing.throw_switch('RENEWING', true);
$function$;

COMMENT ON FUNCTION billing_ops.pause_renewing IS
'Stops renewing. Access stays, and everything missed is caught up after resume_renewing. Returns since when it is stopped.';
