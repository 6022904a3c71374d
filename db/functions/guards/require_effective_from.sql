CREATE OR REPLACE FUNCTION billing.require_effective_from(
    p_effective_from timestamptz,
    p_as_of timestamptz
)
RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL or not a finite instant, SB104 before p_as_of
-- Idempotent: yes
-- Whoever may back-date a call may back-date this too.
DECLARE
    v_effective_from CONSTANT timestamptz := date_trunc('second', p_effective_from, 'UTC');
BEGIN
    IF (v_effective_from BETWEEN '1970-01-01' AND '9999-12-31') IS NOT TRUE THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_effective_from must be an instant of the years 1970 to 9999';
    END IF;
    IF v_effective_from < p_as_of AND NOT (billing.is_test_database() OR billing.is_operator()) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB104',
            MESSAGE = format('p_effective_from %s lies in the past', billing.to_rfc3339(v_effective_from));
    END IF;
    RETURN v_effective_from;
END;
$function$;

COMMENT ON FUNCTION billing.require_effective_from IS
'Instant from which a price counts, cut to whole seconds; in the past for operators only, else SB104.';
