CREATE OR REPLACE FUNCTION billing.was_built_upon(
    p_invoice billing.invoice
)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing; the caller holds the subscription
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- Changes and ends hang on the invoice of the period, wherever in the period the payment was. An invoice takes up all
    -- lines that wait, so those that wait came later; entries are numbered in the order in which they were booked.
    SELECT EXISTS (
        SELECT 1
        FROM billing.invoice AS x
        WHERE x.customer_id = p_invoice.customer_id
          AND (x.invoice_id = b.base_invoice_id OR x.base_invoice_id = b.base_invoice_id)
          AND (
              (x.base_invoice_id IS NOT NULL AND x.invoice_id > p_invoice.invoice_id AND x.status <> 'VOID')
              OR EXISTS (
                  SELECT 1
                  FROM billing.credit_entry AS e
                  WHERE e.customer_id = x.customer_id AND e.invoice_id = x.invoice_id AND e.kind = 'UNUSED_TIME'
                    AND e.entry_seq > b.paid_by_entry
              )
              OR EXISTS (
                  SELECT 1
                  FROM billing.refund AS f
                  WHERE f.customer_id = x.customer_id AND f.invoice_id = x.invoice_id
                    AND f.status <> 'FAILED' AND f.purpose <> 'LATE_PAYMENT'
                    AND f.requested_at >= p_invoice.issued_at
              )
          )
    ) OR EXISTS (
        SELECT 1
        FROM billing.invoice_line AS l
        INNER JOIN billing.invoice AS x ON x.customer_id = l.customer_id AND x.invoice_id = l.invoice_id
        WHERE l.customer_id = p_invoice.customer_id AND l.base_invoice_id = b.base_invoice_id
          AND x.invoice_id > p_invoice.invoice_id AND x.status <> 'VOID'
    ) OR EXISTS (
        SELECT 1
        FROM billing.pending_line AS w
        WHERE w.customer_id = p_invoice.customer_id AND w.base_invoice_id = b.base_invoice_id
          AND w.billed_on_invoice_id IS NULL AND w.dropped_at IS NULL
    )
    FROM (
        SELECT
            coalesce(p_invoice.base_invoice_id, p_invoice.invoice_id) AS base_invoice_id,
            coalesce(max(e.entry_seq), 0) AS paid_by_entry
        FROM billing.credit_entry AS e
        WHERE e.customer_id = p_invoice.customer_id AND e.invoice_id = p_invoice.invoice_id AND e.kind = 'DRAWN'
    ) AS b;
$function$;

COMMENT ON FUNCTION billing.was_built_upon IS
'Whether a later change, credit or refund was computed from the period to which an invoice belongs, and so from its payment.';
