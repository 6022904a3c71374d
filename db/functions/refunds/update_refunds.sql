CREATE OR REPLACE FUNCTION billing.update_refunds(
    p_judgements billing.refund_judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; invoices and refunds are locked by the caller
    -- Writes:     refund, invoice
    -- Raises:     SB901 where an ended refund was to be overwritten
    -- Idempotent: no
    -- Where it was rejected, nobody sends or asks until the case is closed. Late money never paid its invoice. One that had
    -- ended is asked about until there is an answer.
    UPDATE billing.invoice AS i
    SET amount_refunded = i.amount_refunded + b.amount
    FROM (
        SELECT
            f.customer_id, f.invoice_id,
            sum(CASE j.refund_status WHEN 'SUCCEEDED' THEN f.amount ELSE -f.amount END) AS amount
        FROM unnest(p_judgements) AS j
        INNER JOIN billing.refund AS f ON f.customer_id = j.customer_id AND f.refund_id = j.refund_id
        WHERE j.verdict = 'APPLIED' AND f.purpose <> 'LATE_PAYMENT'
          AND (j.refund_status = 'SUCCEEDED') <> (f.status = 'SUCCEEDED')
        GROUP BY f.customer_id, f.invoice_id
    ) AS b
    WHERE i.customer_id = b.customer_id AND i.invoice_id = b.invoice_id;

    UPDATE billing.refund AS f
    SET status = j.refund_status,
        gateway_refund_id = coalesce(f.gateway_refund_id, j.gateway_refund_id),
        failure_code = CASE WHEN j.refund_status = 'FAILED' THEN j.code END,
        lease_until = NULL,
        refusal_count = CASE WHEN j.outcome = 'NOT_ATTEMPTED' THEN f.refusal_count + 1 ELSE 0 END,
        not_found_count = j.not_found_count,
        not_found_rounds = j.not_found_rounds,
        next_send_at = j.next_send_at,
        held_until = clock_timestamp() + make_interval(secs => j.hold_seconds::double precision),
        next_lookup_at = j.next_lookup_at,
        ended_at = CASE WHEN j.refund_status IN ('SUCCEEDED', 'FAILED') THEN p_as_of END
    FROM unnest(p_judgements) AS j
    WHERE j.verdict = 'APPLIED'
      AND f.customer_id = j.customer_id
      AND f.refund_id = j.refund_id;

    UPDATE billing.refund AS f
    SET lease_until = NULL, next_send_at = NULL, next_lookup_at = NULL
    FROM unnest(p_judgements) AS j
    WHERE j.verdict = 'REJECTED'
      AND f.customer_id = j.customer_id
      AND f.refund_id = j.refund_id
      AND f.ended_at IS NULL;

    UPDATE billing.refund AS f
    SET lease_until = NULL,
        next_lookup_at = CASE WHEN j.outcome = 'UNKNOWN' THEN f.next_lookup_at END
    FROM unnest(p_judgements) AS j
    WHERE j.verdict <> 'APPLIED'
      AND j.source = 'LOOKUP'
      AND f.customer_id = j.customer_id
      AND f.refund_id = j.refund_id
      AND f.claim_epoch = j.claim_epoch
      AND f.ended_at IS NOT NULL;
$function$;

COMMENT ON FUNCTION billing.update_refunds IS
'Writes the judged status and schedule of each refund, and what of its invoice has gone back.';
