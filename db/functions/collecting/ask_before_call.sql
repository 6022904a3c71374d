CREATE OR REPLACE FUNCTION billing.ask_before_call(
    p_triage billing.triage[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; invoices are locked by the caller
-- Writes:     payment_attempt, invoice
-- Raises:     nothing of its own
-- Idempotent: no
-- After a restore the next try may have been made by the database that was lost: the attempt begins as UNKNOWN. Found
-- nowhere, it is sent; found declined, the try after it is looked up first in its turn.
BEGIN
    INSERT INTO billing.payment_attempt (
        customer_id, invoice_id, attempt_no, status, amount, currency, idempotency_key, gateway_account_id,
        payment_method_id, payment_method_token, description, gateway_intent_id, claim_epoch, next_lookup_at, started_at
    )
    SELECT
        i.customer_id, i.invoice_id, i.attempt_count + 1, 'UNKNOWN', i.amount_due, i.currency,
        billing.gateway_key(i.invoice_id, i.attempt_count + 1), m.gateway_account_id, m.payment_method_id, m.token,
        billing.charge_text(i), billing.intent_for_retry(i, m.gateway_account_id), 0, p_as_of, p_as_of
    FROM unnest(p_triage) AS t
    INNER JOIN billing.invoice AS i ON i.customer_id = t.customer_id AND i.invoice_id = t.invoice_id
    INNER JOIN billing.payment_method AS m
        ON m.customer_id = t.customer_id AND m.payment_method_id = t.payment_method_id
    WHERE t.way = 'ASK'
    ORDER BY i.customer_id, i.invoice_id;

    UPDATE billing.invoice AS i
    SET attempt_count = i.attempt_count + 1, next_attempt_at = NULL, held_until = NULL
    FROM unnest(p_triage) AS t
    WHERE t.way = 'ASK' AND i.customer_id = t.customer_id AND i.invoice_id = t.invoice_id;
END;
$function$;

COMMENT ON FUNCTION billing.ask_before_call IS
'Begins the attempts of invoices that are to be looked up at the gateway before anything is sent for them.';
