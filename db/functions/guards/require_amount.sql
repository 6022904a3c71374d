CREATE OR REPLACE FUNCTION billing.require_amount(
    p_amount bigint,
    p_name text,
    p_least bigint
)
RETURNS bigint
LANGUAGE plpgsql
IMMUTABLE
PARALLEL SAFE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL, SB106 below p_least or above 10^15
-- Idempotent: yes
DECLARE
    c_most CONSTANT bigint := 1000000000000000;
BEGIN
    IF p_amount IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('%s must not be NULL', p_name);
    END IF;
    IF p_amount NOT BETWEEN p_least AND c_most THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB106',
            MESSAGE = format('%s must be %s to %s minor units, not %s', p_name, p_least, c_most, p_amount);
    END IF;
    RETURN p_amount;
END;
$function$;

COMMENT ON FUNCTION billing.require_amount IS
'Returns an amount in minor units that is at least p_least and at most 10^15, or raises SB106.';
