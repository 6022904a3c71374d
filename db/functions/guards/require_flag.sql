CREATE OR REPLACE FUNCTION billing.require_flag(
    p_value boolean,
    p_name text
)
RETURNS boolean
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL
-- Idempotent: yes
BEGIN
    IF p_value IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('%s must be true or false, not NULL', p_name);
    END IF;
    RETURN p_value;
END;
$function$;

COMMENT ON FUNCTION billing.require_flag IS 'Returns a boolean that is not NULL, or raises SB101.';
