CREATE OR REPLACE FUNCTION billing.require_dunning_policy(
    p_code text
)
RETURNS billing.dunning_policy
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB207 no such dunning policy
-- Idempotent: yes
DECLARE
    v_policy billing.dunning_policy;
BEGIN
    SELECT d.* INTO v_policy FROM billing.dunning_policy AS d WHERE d.code = p_code;

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB207',
            MESSAGE = format('dunning policy %s does not exist', billing.quoted(p_code));
    END IF;

    RETURN v_policy;
END;
$function$;

COMMENT ON FUNCTION billing.require_dunning_policy IS 'Returns the dunning policy with this code, or raises SB207.';
