CREATE OR REPLACE FUNCTION billing.payment_before(
    p_attempt billing.payment_attempt
)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
RETURN CASE
    WHEN p_attempt.gateway_intent_id IS NOT NULL THEN (
        SELECT a.gateway_payment_id
        FROM billing.payment_attempt AS a
        WHERE a.customer_id = p_attempt.customer_id
          AND a.invoice_id = p_attempt.invoice_id
          AND a.attempt_no < p_attempt.attempt_no
          AND a.gateway_payment_id IS NOT NULL
        ORDER BY a.attempt_no DESC
        LIMIT 1
    )
END;

COMMENT ON FUNCTION billing.payment_before IS
'The last payment of an earlier try under the intent that an attempt confirms again: a later one there is its own.';
