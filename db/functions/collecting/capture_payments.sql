CREATE OR REPLACE FUNCTION billing.capture_payments(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; invoices are locked by the caller
    -- Writes:     invoice, payment_attempt
    -- Raises:     nothing
    -- Idempotent: no
    -- Less than what is due leaves the invoice open, without a next attempt: a case decides.
    UPDATE billing.invoice AS i
    SET amount_paid = i.amount_paid + j.captured,
        status = CASE WHEN i.amount_due = j.captured THEN 'PAID' ELSE i.status END,
        paid_at = CASE WHEN i.amount_due = j.captured THEN p_as_of END,
        next_attempt_at = NULL,
        held_until = NULL,
        dunning_ends_at = NULL,
        lane = CASE WHEN i.status = 'FAILED' THEN 'BACKLOG' ELSE i.lane END
    FROM unnest(p_judgements) AS j
    WHERE j.verdict = 'APPLIED'
      AND j.attempt_status = 'SUCCEEDED'
      AND j.captured > 0
      AND i.customer_id = j.customer_id
      AND i.invoice_id = j.invoice_id;

    -- A success after a decline: the try that took its place is not sent any more.
    SELECT billing.release_attempts(
        ARRAY(
            SELECT ROW(i.customer_id, i.invoice_id)::billing.invoice_key
            FROM unnest(p_judgements) AS j
            INNER JOIN billing.payment_attempt AS a ON a.customer_id = j.customer_id AND a.attempt_id = j.attempt_id
            INNER JOIN billing.invoice AS i ON i.customer_id = j.customer_id AND i.invoice_id = j.invoice_id
            WHERE j.verdict = 'APPLIED'
              AND j.attempt_status = 'SUCCEEDED'
              AND i.status = 'PAID'
              AND a.attempt_no < i.attempt_count
        ),
        p_as_of
    );
$function$;

COMMENT ON FUNCTION billing.capture_payments IS 'Books captured money to its invoice, which is PAID once nothing remains due.';
