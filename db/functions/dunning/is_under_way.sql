CREATE OR REPLACE FUNCTION billing.is_under_way(
    p_invoice billing.invoice
)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
RETURN EXISTS (
    SELECT 1
    FROM billing.payment_attempt AS a
    WHERE a.customer_id = p_invoice.customer_id
      AND a.invoice_id = p_invoice.invoice_id
      AND a.status IN ('STARTED', 'UNKNOWN', 'PROCESSING')
);

COMMENT ON FUNCTION billing.is_under_way IS
'True while a charge or bank money for an invoice is under way or its outcome unknown, which keeps the end of dunning from it: only a definite answer ends it.';
