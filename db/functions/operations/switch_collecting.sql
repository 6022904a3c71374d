CREATE OR REPLACE FUNCTION billing.switch_collecting(
    p_gateway_account text,
    p_stop boolean
)
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      gateway_account or operator_switch, one row
-- Writes:     gateway_account or operator_switch
-- Raises:     SB206 gateway account
-- Idempotent: yes: when it was stopped first stays
DECLARE
    v_account billing.gateway_account;
    v_paused_at timestamptz;
BEGIN
    IF p_gateway_account IS NULL THEN
        RETURN billing.throw_switch('COLLECTING', p_stop);
    END IF;
    v_account := billing.require_gateway_account(p_gateway_account);
    UPDATE billing.gateway_account AS a
    SET collecting_paused_at = CASE WHEN p_stop THEN coalesce(a.collecting_paused_at, billing.now()) END
    WHERE a.gateway_account_id = v_account.gateway_account_id
    RETURNING a.collecting_paused_at INTO STRICT v_paused_at;
    RETURN v_paused_at;
END;
$function$;

COMMENT ON FUNCTION billing.switch_collecting IS
'Stops or resumes collecting through one gateway account, or through all of them where it is NULL.';
