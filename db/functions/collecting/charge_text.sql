CREATE OR REPLACE FUNCTION billing.charge_text(
    p_invoice billing.invoice
)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
RETURN format('Invoice %s%s', p_invoice.invoice_id, coalesce(' ' || p_invoice.plan_code, ''));

COMMENT ON FUNCTION billing.charge_text IS 'Text sent to the gateway with a charge; no personal data.';
