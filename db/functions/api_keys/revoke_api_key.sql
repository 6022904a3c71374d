CREATE OR REPLACE FUNCTION billing_ops.revoke_api_key(
    p_api_key_id bigint
)
RETURNS SETOF billing_ops.api_key
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      api_key
-- Writes:     api_key
-- Raises:     SB261 no such key
-- Idempotent: yes
BEGIN
    PERFORM billing.require_api_key(p_api_key_id);
    UPDATE billing.api_key AS k
    SET revoked_at = clock_timestamp(), revoked_by = billing.actor()
    WHERE k.api_key_id = p_api_key_id AND k.revoked_at IS NULL;
    RETURN QUERY SELECT k.* FROM billing_ops.api_key AS k WHERE k.api_key_id = p_api_key_id;
END;
$function$;

COMMENT ON FUNCTION billing_ops.revoke_api_key IS
'Refuses a key from now on: the next request with it is turned away. Its predecessor or successor is another key.';
