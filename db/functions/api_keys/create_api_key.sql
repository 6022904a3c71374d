CREATE OR REPLACE FUNCTION billing_ops.create_api_key(
    p_name text,
    p_key_hash bytea,
    p_scopes text[],
    p_customer_id bigint DEFAULT NULL,
    p_expires_at timestamptz DEFAULT NULL
)
RETURNS SETOF billing_ops.api_key
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     api_key
-- Raises:     SB101 malformed, SB202 customer, SB309 a key of this name is in use
-- Idempotent: no
DECLARE
    v_scope text;
    v_api_key_id bigint;
BEGIN
    PERFORM billing.require_code(p_name, 'p_name', '^[A-Za-z0-9][A-Za-z0-9_.-]*$');
    PERFORM billing.require_key_hash(p_key_hash);
    IF coalesce(cardinality(p_scopes), 0) = 0 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_scopes must hold read, write or operate';
    END IF;
    FOREACH v_scope IN ARRAY p_scopes LOOP
        PERFORM billing.require_choice(v_scope, 'p_scopes', '{read,write,operate}');
    END LOOP;
    IF p_customer_id IS NOT NULL THEN
        PERFORM billing.require_customer(p_customer_id);
        IF 'operate' = ANY (p_scopes) THEN
            RAISE EXCEPTION USING
                ERRCODE = 'SB101',
                MESSAGE = 'a key that is bound to a customer cannot have the scope operate';
        END IF;
    END IF;
    IF p_expires_at <= clock_timestamp() OR p_expires_at > clock_timestamp() + interval '10 years' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_expires_at must lie in the future, at most ten years ahead';
    END IF;

    INSERT INTO billing.api_key (name, key_hash, scopes, customer_id, expires_at, created_by)
    SELECT
        p_name, p_key_hash, array_agg(DISTINCT s.scope ORDER BY s.scope), p_customer_id, p_expires_at, billing.actor()
    FROM unnest(p_scopes) AS s (scope)
    ON CONFLICT DO NOTHING
    RETURNING api_key_id INTO v_api_key_id;
    IF v_api_key_id IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB309',
            MESSAGE = 'a key with this name, or with this hash, exists',
            DETAIL = coalesce((
                SELECT k.api_key_id::text
                FROM billing.api_key AS k
                WHERE k.name = p_name AND k.rotated_at IS NULL AND k.revoked_at IS NULL
            ), 'the hash is that of another key'),
            HINT = 'Rotate or revoke it, or choose another name.';
    END IF;
    RETURN QUERY SELECT k.* FROM billing_ops.api_key AS k WHERE k.api_key_id = v_api_key_id;
END;
$function$;

COMMENT ON FUNCTION billing_ops.create_api_key IS
'Lets in who knows the key with this SHA-256, with these of the scopes read, write and operate; where p_customer_id is given to the things of that customer only. The key itself never comes here.';
