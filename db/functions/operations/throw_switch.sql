CREATE OR REPLACE FUNCTION billing.throw_switch(
    p_name text,
    p_stop boolean
)
RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      operator_switch, one row
-- Writes:     operator_switch
-- Raises:     nothing of its own
-- Idempotent: yes: who stopped it first, and when, stays
DECLARE
    v_thrown_at timestamptz;
BEGIN
    UPDATE billing.operator_switch AS w
    SET thrown_at = CASE WHEN p_stop THEN coalesce(w.thrown_at, clock_timestamp()) END,
        thrown_by = CASE WHEN p_stop THEN coalesce(w.thrown_by, billing.actor()) END
    WHERE w.name = p_name
    RETURNING w.thrown_at INTO STRICT v_thrown_at;
    RETURN v_thrown_at;
END;
$function$;

COMMENT ON FUNCTION billing.throw_switch IS
'Stops or resumes RENEWING or COLLECTING for the whole database, and returns since when it is stopped.';
