CREATE OR REPLACE FUNCTION billing.require_integer(
    p_value integer,
    p_name text,
    p_least integer,
    p_most integer
)
RETURNS integer
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL or out of range
-- Idempotent: yes
BEGIN
    IF (p_value BETWEEN p_least AND p_most) IS NOT TRUE THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('%s must be %s to %s, not %s', p_name, p_least, p_most, coalesce(p_value::text, 'NULL'));
    END IF;
    RETURN p_value;
END;
$function$;

COMMENT ON FUNCTION billing.require_integer IS 'Returns a number that lies in its range, or raises SB101; NULL is refused.';
