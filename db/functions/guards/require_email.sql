CREATE OR REPLACE FUNCTION billing.require_email(
    p_email text
)
RETURNS text
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 not an address, SB105 holds a card number
-- Idempotent: yes
BEGIN
    IF p_email IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM billing.require_text(p_email, 'p_email', 254);
    IF p_email !~ '^[^@[:space:]]+@[^@[:space:]]+$' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_email is no e-mail address';
    END IF;
    RETURN p_email;
END;
$function$;

COMMENT ON FUNCTION billing.require_email IS 'Returns an e-mail address or NULL, or raises SB101; never repeats it in an error.';
