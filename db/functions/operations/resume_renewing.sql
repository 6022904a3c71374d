CREATE OR REPLACE FUNCTION billing_ops.resume_renewing()
RETURNS timestamptz
LANGUAGE sql
SECURITY DEFINER
SET search_path = ''
AS $function$
    -- Locks:      operator_switch, one row
    -- Writes:     operator_switch
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT billing.throw_switch('RENEWING', false);
$function$;

COMMENT ON FUNCTION billing_ops.resume_renewing IS 'Lets renewing go on. Returns NULL: it is not stopped.';
