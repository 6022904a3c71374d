CREATE OR REPLACE FUNCTION billing.claim_idempotency_key(
    p_customer_id bigint,
    p_operation text,
    p_key text,
    p_arguments jsonb,
    p_keep_for_ever boolean,
    p_as_of timestamptz
)
RETURNS jsonb
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      idempotency_key, one row; first in the lock order
-- Writes:     idempotency_key
-- Raises:     SB101 malformed key, SB305 used with other arguments, SB401 its first call was dropped meanwhile,
--             SB901 taken without an answer
-- Idempotent: yes
-- A second call with the same key waits here for the first one to commit or to roll back. The setting billing.replayed
-- tells the rest of the transaction that an answer came from store.
DECLARE
    v_hash CONSTANT text := encode(sha256(convert_to(p_arguments::text, 'UTF8')), 'hex');
    v_stored billing.idempotency_key;
BEGIN
    IF p_key IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM billing.require_text(p_key, 'p_idempotency_key', 255);

    INSERT INTO billing.idempotency_key (
        customer_id, operation, idempotency_key, request_hash, created_at, keep_for_ever
    )
    VALUES (p_customer_id, p_operation, p_key, v_hash, coalesce(p_as_of, billing.now()), p_keep_for_ever)
    ON CONFLICT ON CONSTRAINT idempotency_key_pkey DO NOTHING;
    IF found THEN
        RETURN NULL;
    END IF;

    SELECT k.*
    INTO v_stored
    FROM billing.idempotency_key AS k
    WHERE k.customer_id = p_customer_id AND k.operation = p_operation AND k.idempotency_key = p_key;

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB401',
            MESSAGE = 'the idempotency key was dropped at this very moment',
            HINT = 'Call again.';
    ELSIF v_stored.request_hash <> v_hash THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB305',
            MESSAGE = format('p_idempotency_key was used for another %s', p_operation),
            DETAIL = format('first used at %s', billing.to_rfc3339(v_stored.created_at)),
            HINT = 'Send the same arguments again, or a new key.';
    ELSIF v_stored.response IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB901',
            MESSAGE = format('a key of %s is stored without its answer', p_operation);
    END IF;

    PERFORM set_config('billing.replayed', 'true', true);
    RETURN v_stored.response;
END;
$function$;

COMMENT ON FUNCTION billing.claim_idempotency_key IS
'Takes a caller''s key: NULL = go on and store the answer with store_response; else the stored answer, to be returned as it is.';
