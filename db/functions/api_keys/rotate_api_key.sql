CREATE OR REPLACE FUNCTION billing_ops.rotate_api_key(
    p_api_key_id bigint,
    p_key_hash bytea,
    p_overlap interval DEFAULT '24 hours'
)
RETURNS SETOF billing_ops.api_key
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      api_key
-- Writes:     api_key
-- Raises:     SB101 malformed, SB261 no such key, SB309 the hash is that of another key, SB361 rotated already, expired
--             or revoked
-- Idempotent: no
DECLARE
    v_old billing.api_key;
    v_api_key_id bigint;
BEGIN
    PERFORM billing.require_key_hash(p_key_hash);
    PERFORM billing.require_span(p_overlap, 'p_overlap', '0 seconds', '90 days');
    v_old := billing.require_api_key(p_api_key_id);
    IF v_old.revoked_at IS NOT NULL OR v_old.rotated_at IS NOT NULL OR v_old.expires_at <= clock_timestamp() THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB361',
            MESSAGE = format('API key %s was rotated already, has expired or is revoked', p_api_key_id),
            HINT = 'Rotate the newest key of that name, or create one.';
    END IF;

    UPDATE billing.api_key AS k
    SET rotated_at = clock_timestamp(),
        expires_at = least(k.expires_at, clock_timestamp() + p_overlap)
    WHERE k.api_key_id = p_api_key_id;
    INSERT INTO billing.api_key (name, key_hash, scopes, customer_id, replaces_api_key_id, expires_at, created_by)
    VALUES (
        v_old.name, p_key_hash, v_old.scopes, v_old.customer_id, p_api_key_id, v_old.expires_at, billing.actor()
    )
    ON CONFLICT DO NOTHING
    RETURNING api_key_id INTO v_api_key_id;
    IF v_api_key_id IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB309',
            MESSAGE = 'a key with this hash exists';
    END IF;
    RETURN QUERY SELECT k.* FROM billing_ops.api_key AS k WHERE k.api_key_id = v_api_key_id;
END;
$function$;

COMMENT ON FUNCTION billing_ops.rotate_api_key IS
'Replaces a key by one with the same name and rights, and returns the new one. The old one is taken for p_overlap longer, so that callers can change over; never beyond an end that it had before, which the new one keeps.';
