CREATE OR REPLACE FUNCTION billing.require_code(
    p_code text,
    p_name text,
    p_pattern text
)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL or not a plain code, SB105 holds a card number
-- Idempotent: yes
BEGIN
    PERFORM billing.require_text(p_code, p_name, 63);
    IF p_code !~ p_pattern THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('%s is no plain code', p_name),
            HINT = format('It must match %s.', p_pattern);
    END IF;
    RETURN p_code;
END;
$function$;

COMMENT ON FUNCTION billing.require_code IS 'Returns a code that matches a pattern and has at most 63 characters, or raises SB101.';
