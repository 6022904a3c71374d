CREATE OR REPLACE FUNCTION billing_worker.keep_intents(
    p_intents billing.attempt_intent[]
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      invoice, in key order
-- Writes:     invoice
-- Raises:     SB101 not an array of at most 10000 intents
-- Idempotent: yes
-- Lost with a worker that dies, it costs no more than a second intent.
DECLARE
    v_kept integer;
BEGIN
    IF (cardinality(p_intents) BETWEEN 0 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_intents must be an array of at most 10000 intents';
    END IF;
    PERFORM 1
    FROM billing.invoice AS i
    WHERE (i.customer_id, i.invoice_id) IN (
        SELECT a.customer_id, a.invoice_id
        FROM unnest(p_intents) AS n
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = n.customer_id AND a.attempt_id = n.attempt_id
    )
    ORDER BY i.customer_id, i.invoice_id
    FOR NO KEY UPDATE;

    UPDATE billing.invoice AS i
    SET gateway_intent_id = n.gateway_intent_id
    FROM unnest(p_intents) AS n
    INNER JOIN billing.payment_attempt AS a ON a.customer_id = n.customer_id AND a.attempt_id = n.attempt_id
    WHERE i.customer_id = a.customer_id
      AND i.invoice_id = a.invoice_id
      AND length(n.gateway_intent_id) BETWEEN 1 AND 255
      AND a.attempt_no = i.attempt_count
      AND i.gateway_intent_id IS DISTINCT FROM n.gateway_intent_id;
    GET DIAGNOSTICS v_kept = ROW_COUNT;
    RETURN v_kept;
END;
$function$;

COMMENT ON FUNCTION billing_worker.keep_intents IS
'Keeps with their invoices the intents that attempts have made at gateways that have such a thing, so that the next try confirms the same one.';
