CREATE OR REPLACE FUNCTION billing.may_go_on(
    p_run_id bigint
)
RETURNS boolean
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB208 no such run, or it is done
-- Idempotent: yes
DECLARE
    v_status text;
BEGIN
    IF p_run_id IS NULL THEN
        RETURN true;
    END IF;
    SELECT r.status INTO v_status FROM billing.billing_run AS r WHERE r.billing_run_id = p_run_id;
    IF v_status IS NULL OR v_status = 'DONE' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB208',
            MESSAGE = format('renewal run %s does not exist or has ended', p_run_id);
    END IF;
    RETURN v_status = 'RUNNING';
END;
$function$;

COMMENT ON FUNCTION billing.may_go_on IS 'False once a run was stopped because too many renewals were parked.';
