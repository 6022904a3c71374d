CREATE OR REPLACE FUNCTION billing.require_gateway_account(
    p_code text
)
RETURNS billing.gateway_account
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB206 no such gateway account
-- Idempotent: yes
DECLARE
    v_account billing.gateway_account;
BEGIN
    SELECT a.* INTO v_account FROM billing.gateway_account AS a WHERE a.code = p_code;

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB206',
            MESSAGE = format('gateway account %s does not exist', billing.quoted(p_code));
    END IF;

    RETURN v_account;
END;
$function$;

COMMENT ON FUNCTION billing.require_gateway_account IS 'Returns the gateway account with this code, or raises SB206.';
