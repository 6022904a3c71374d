CREATE OR REPLACE FUNCTION billing.invoice_payload(
    p_invoice billing.invoice
)
RETURNS jsonb
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN jsonb_build_object(
    'invoiceId', p_invoice.invoice_id,
    'kind', p_invoice.kind,
    'status', p_invoice.status,
    'currency', p_invoice.currency,
    'total', p_invoice.total,
    'creditApplied', p_invoice.credit_applied,
    'amountPaid', p_invoice.amount_paid,
    'carried', p_invoice.carried,
    'amountDue', p_invoice.amount_due,
    'periodStart', billing.to_rfc3339(p_invoice.period_start),
    'periodEnd', billing.to_rfc3339(p_invoice.period_end)
);

COMMENT ON FUNCTION billing.invoice_payload IS 'The invoice part of an event, amounts in minor units.';
