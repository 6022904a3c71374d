CREATE OR REPLACE FUNCTION billing.reschedule_invoices(
    p_judgements billing.judgement[]
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; invoices are locked by the caller
    -- Writes:     invoice
    -- Raises:     nothing
    -- Idempotent: yes
    -- A look-up that errs changes nothing, so it stands in no branch here. Where money may have moved for something
    -- else, nothing is sent until the case is closed.
    UPDATE billing.invoice AS i
    SET next_attempt_at = CASE j.verdict WHEN 'APPLIED' THEN j.resend_at END,
        held_until = clock_timestamp() + make_interval(secs => j.hold_seconds::double precision)
    FROM unnest(p_judgements) AS j
    WHERE i.customer_id = j.customer_id
      AND i.invoice_id = j.invoice_id
      AND (i.status = 'OPEN' OR (i.status = 'FAILED' AND i.lane = 'INTERACTIVE'))
      AND (
          (
              j.verdict = 'REJECTED'
              AND (j.outcome = 'SUCCEEDED' OR j.attempt_status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING'))
          )
          OR (
              j.verdict = 'APPLIED'
              AND (
                  j.outcome IN ('NOT_ATTEMPTED', 'REQUIRES_ACTION', 'PROCESSING')
                  OR (j.outcome IN ('UNKNOWN', 'SUCCEEDED') AND j.source = 'SEND' AND j.attempt_status = 'UNKNOWN')
                  OR (j.outcome = 'NOT_FOUND' AND (j.resend_at IS NOT NULL OR j.case_kind IS NOT NULL))
              )
              AND j.attempt_status NOT IN ('DECLINED', 'SUCCEEDED')
          )
      );
$function$;

COMMENT ON FUNCTION billing.reschedule_invoices IS
'Says when the open attempt of an invoice may be sent again; NULL fences it off while bank or customer have it in hand.';
