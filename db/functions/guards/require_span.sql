CREATE OR REPLACE FUNCTION billing.require_span(
    p_value interval,
    p_name text,
    p_least interval,
    p_most interval
)
RETURNS interval
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL, out of range, or with months, whose length depends on the calendar
-- Idempotent: yes
BEGIN
    IF NOT billing.is_span(p_value, p_least, p_most) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('%s must be %s to %s, in days, hours, minutes and seconds', p_name, p_least, p_most);
    END IF;
    RETURN p_value;
END;
$function$;

COMMENT ON FUNCTION billing.require_span IS 'Returns a span of time of fixed length within its range, or raises SB101.';
