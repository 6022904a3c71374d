CREATE OR REPLACE FUNCTION billing.store_response(
    p_customer_id bigint,
    p_operation text,
    p_key text,
    p_response jsonb
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; claim_idempotency_key came before
-- Writes:     idempotency_key
-- Raises:     SB901 the key was not claimed
-- Idempotent: yes
BEGIN
    IF p_key IS NULL THEN
        RETURN;
    END IF;

    UPDATE billing.idempotency_key AS k
    SET response = p_response
    WHERE k.customer_id = p_customer_id AND k.operation = p_operation AND k.idempotency_key = p_key;

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB901',
            MESSAGE = format('the answer of %s has no claimed key', p_operation);
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.store_response IS
'Stores the answer under the claimed key, in the transaction of the effect. Errors are never stored.';
