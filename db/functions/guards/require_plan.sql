CREATE OR REPLACE FUNCTION billing.require_plan(
    p_plan_code text
)
RETURNS billing.plan
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB203 no such plan
-- Idempotent: yes
DECLARE
    v_plan billing.plan;
BEGIN
    SELECT p.* INTO v_plan FROM billing.plan AS p WHERE p.code = p_plan_code;

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB203',
            MESSAGE = format('plan %s does not exist', billing.quoted(p_plan_code));
    END IF;

    RETURN v_plan;
END;
$function$;

COMMENT ON FUNCTION billing.require_plan IS 'Returns the plan with this code, or raises SB203.';
