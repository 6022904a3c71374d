CREATE OR REPLACE FUNCTION billing.require_choice(
    p_value text,
    p_name text,
    p_choices text[]
)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 not one of the choices
-- Idempotent: yes
BEGIN
    IF p_value IS NULL OR p_value <> ALL (p_choices) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('%s must be one of %s', p_name, array_to_string(p_choices, ', '));
    END IF;
    RETURN p_value;
END;
$function$;

COMMENT ON FUNCTION billing.require_choice IS
'Returns a text that is one of the choices, or raises SB101 without repeating the text.';
