CREATE OR REPLACE FUNCTION billing.treatment_of_unexpected(
    p_judgement billing.judgement
)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
RETURN CASE
    WHEN p_judgement.captured > 0 THEN 'CREDITED'
    WHEN EXISTS (
        SELECT 1
        FROM billing.invoice AS i
        INNER JOIN billing.subscription AS s ON s.customer_id = i.customer_id AND s.resource_id = i.resource_id
        WHERE i.customer_id = p_judgement.customer_id
          AND i.invoice_id = p_judgement.invoice_id
          AND s.status IN ('INCOMPLETE', 'TRIALING', 'ACTIVE', 'PAST_DUE', 'PAUSED')
    ) THEN 'CREDITED'
    WHEN EXISTS (
        SELECT 1
        FROM billing.payment_attempt AS a
        WHERE a.customer_id = p_judgement.customer_id
          AND a.attempt_id = p_judgement.attempt_id
          AND a.gateway_payment_id IS NOT NULL
          AND a.gateway_account_id IS NOT NULL
    ) THEN 'REFUNDED'
    ELSE 'CASE'
END;

COMMENT ON FUNCTION billing.treatment_of_unexpected IS
'CREDITED for a surplus, and for late money where the resource has a live subscription; REFUNDED where it has none; CASE where there is no payment at a gateway account that could be refunded.';
