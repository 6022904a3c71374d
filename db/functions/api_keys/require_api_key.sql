CREATE OR REPLACE FUNCTION billing.require_api_key(
    p_api_key_id bigint
)
RETURNS billing.api_key
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      api_key, one row, FOR NO KEY UPDATE
-- Writes:     nothing
-- Raises:     SB261 no such key
-- Idempotent: yes
DECLARE
    v_key billing.api_key;
BEGIN
    SELECT k.* INTO v_key FROM billing.api_key AS k WHERE k.api_key_id = p_api_key_id FOR NO KEY UPDATE;

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB261',
            MESSAGE = format('API key %s does not exist', coalesce(p_api_key_id::text, 'NULL')),
            HINT = 'billing_ops.api_key lists them.';
    END IF;

    RETURN v_key;
END;
$function$;

COMMENT ON FUNCTION billing.require_api_key IS 'Locks one API key and returns it, or raises SB261.';
