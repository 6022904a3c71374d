CREATE OR REPLACE FUNCTION billing.require_currency(
    p_currency text
)
RETURNS text
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL, SB102 not an active ISO 4217 code
-- Idempotent: yes
BEGIN
    IF p_currency IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_currency must not be NULL';
    END IF;
    IF NOT EXISTS (SELECT 1 FROM billing.currency AS c WHERE c.code = p_currency) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB102',
            MESSAGE = format('%s is no currency known here', billing.quoted(p_currency)),
            HINT = 'Send three capital letters of ISO 4217, for example USD.';
    END IF;
    RETURN p_currency;
END;
$function$;

COMMENT ON FUNCTION billing.require_currency IS 'Returns an active ISO 4217 code, or raises SB102.';
