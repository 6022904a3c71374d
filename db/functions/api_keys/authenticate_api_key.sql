CREATE OR REPLACE FUNCTION billing_worker.authenticate_api_key(
    p_key_hash bytea,
    p_scope text,
    p_request_id text
)
RETURNS SETOF billing.api_caller
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- No row for a key that is unknown, expired or revoked: nobody learns which. Who lacks the scope gets no rights either.
DECLARE
    v_key billing.api_key;
    v_caller billing.api_caller;
BEGIN
    SELECT k.*
    INTO v_key
    FROM billing.api_key AS k
    WHERE k.key_hash = p_key_hash
      AND k.revoked_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp());
    IF NOT found THEN
        RETURN;
    END IF;

    v_caller.api_key_id := v_key.api_key_id;
    v_caller.key_name := v_key.name;
    v_caller.is_allowed := coalesce(p_scope = ANY (v_key.scopes), false);
    v_caller.role_name := CASE
        WHEN NOT v_caller.is_allowed THEN 'billing_http'
        WHEN 'operate' = ANY (v_key.scopes) THEN 'billing_operator'
        ELSE 'billing_app'
    END;
    v_caller.actor := format('%s %s', p_request_id, v_key.name);
    v_caller.customer_scope := coalesce(v_key.customer_id::text, '');
    RETURN NEXT v_caller;
END;
$function$;

COMMENT ON FUNCTION billing_worker.authenticate_api_key IS
'Who calls over HTTP, by the SHA-256 of the key, and the settings role, billing.actor and billing.customer_scope with which the call is to be made; no row where the key is not to be let in.';
