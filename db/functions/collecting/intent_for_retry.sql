CREATE OR REPLACE FUNCTION billing.intent_for_retry(
    p_invoice billing.invoice,
    p_gateway_account_id integer
)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
RETURN CASE
    WHEN p_invoice.gateway_intent_id IS NOT NULL AND EXISTS (
        SELECT 1
        FROM billing.payment_attempt AS a
        WHERE a.customer_id = p_invoice.customer_id
          AND a.invoice_id = p_invoice.invoice_id
          AND a.attempt_no = p_invoice.attempt_count
          AND a.amount = p_invoice.amount_due
          AND a.gateway_account_id = p_gateway_account_id
          AND a.decline_code IS DISTINCT FROM 'intent_canceled'
    ) THEN p_invoice.gateway_intent_id
END;

COMMENT ON FUNCTION billing.intent_for_retry IS
'The intent at the gateway that the next try of an invoice confirms again; NULL where there is none, where the gateway has canceled it, or where amount or account have changed since, so that a new one is made.';
