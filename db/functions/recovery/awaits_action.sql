CREATE OR REPLACE FUNCTION billing.awaits_action(
    p_invoice billing.invoice,
    p_payment_method_id bigint,
    p_as_of timestamptz
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
      AND a.status = 'REQUIRES_ACTION'
      AND a.action_expires_at > p_as_of
      AND a.payment_method_id = coalesce(p_payment_method_id, a.payment_method_id)
);

COMMENT ON FUNCTION billing.awaits_action IS
'True while the customer may yet complete the action that the attempt in hand asked for, with that same payment method.';
