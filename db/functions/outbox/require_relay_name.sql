CREATE OR REPLACE FUNCTION billing.require_relay_name(
    p_relay text
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 no proper name
-- Idempotent: yes
BEGIN
    IF p_relay IS NULL OR p_relay !~ '^[[:graph:]]{1,200}$' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_relay must be 1 to 200 visible characters without blanks';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_relay_name IS 'Raises SB101 unless the text can name a relay.';
