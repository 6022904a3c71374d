CREATE OR REPLACE FUNCTION billing.go_on_collecting(
    p_case billing.reconciliation_case,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; the caller holds the invoice
    -- Writes:     invoice
    -- Raises:     nothing
    -- Idempotent: yes
    -- What is still due was fenced off by the case. A rung that is planned stands.
    UPDATE billing.invoice AS i
    SET next_attempt_at = p_as_of
    WHERE i.customer_id = p_case.customer_id
      AND i.invoice_id = p_case.invoice_id
      AND i.status = 'OPEN'
      AND i.next_attempt_at IS NULL
      AND i.dunning_ends_at IS NULL
      AND NOT EXISTS (
          SELECT 1
          FROM billing.payment_attempt AS a
          WHERE a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
            AND a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
      )
      AND NOT EXISTS (
          SELECT 1
          FROM billing.reconciliation_case AS c
          WHERE c.customer_id = i.customer_id AND c.invoice_id = i.invoice_id AND c.resolved_at IS NULL
      );
$function$;

COMMENT ON FUNCTION billing.go_on_collecting IS
'Makes an invoice due again that waited for a case, once no other case about it is open.';
