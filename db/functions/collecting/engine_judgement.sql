CREATE OR REPLACE FUNCTION billing.engine_judgement(
    p_invoice billing.invoice,
    p_attempt_id bigint,
    p_outcome text,
    p_attempt_status text,
    p_code text
)
RETURNS billing.judgement
LANGUAGE sql
STABLE
SET search_path = ''
RETURN ROW(
    p_invoice.customer_id, p_attempt_id, p_invoice.invoice_id, p_invoice.subscription_id, 'ENGINE', NULL, p_outcome,
    'APPLIED', p_attempt_status, NULL, NULL, p_invoice.currency, p_code,
    CASE WHEN p_code IS NOT NULL THEN billing.decline_class('*', p_code) END,
    NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL
)::billing.judgement;

COMMENT ON FUNCTION billing.engine_judgement IS 'A judgement about an invoice for which no gateway was asked.';
