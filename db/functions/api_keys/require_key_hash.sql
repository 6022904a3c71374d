CREATE OR REPLACE FUNCTION billing.require_key_hash(
    p_key_hash bytea
)
RETURNS bytea
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL or no SHA-256
-- Idempotent: yes
BEGIN
    IF (octet_length(p_key_hash) = 32) IS NOT TRUE THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_key_hash must be the 32 bytes of a SHA-256',
            HINT = 'Make a key of 256 random bits, give it to the caller, and hand over its hash only.';
    END IF;
    RETURN p_key_hash;
END;
$function$;

COMMENT ON FUNCTION billing.require_key_hash IS 'Returns the SHA-256 of an API key, or raises SB101 where it cannot be one.';
