CREATE OR REPLACE FUNCTION billing.require_time_zone(
    p_time_zone text
)
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL, SB103 not an IANA zone of this server
-- Idempotent: yes
BEGIN
    IF p_time_zone IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_time_zone must not be NULL';
    END IF;
    IF NOT EXISTS (SELECT 1 FROM billing.time_zone AS z WHERE z.name = p_time_zone) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB103',
            MESSAGE = format('%s is no time zone known here', billing.quoted(p_time_zone)),
            HINT = 'Send an IANA name in its exact spelling, for example Europe/Berlin.';
    END IF;
    RETURN p_time_zone;
END;
$function$;

COMMENT ON FUNCTION billing.require_time_zone IS 'Returns the name of an IANA time zone, or raises SB103.';
