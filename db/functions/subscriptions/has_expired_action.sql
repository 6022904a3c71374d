CREATE OR REPLACE FUNCTION billing.has_expired_action(
    p_subscription billing.subscription
)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
RETURN EXISTS (
    SELECT 1
    FROM billing.invoice AS i
    INNER JOIN billing.payment_attempt AS a
        ON a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id AND a.attempt_no = i.attempt_count
    WHERE i.customer_id = p_subscription.customer_id
      AND i.subscription_id = p_subscription.subscription_id
      AND i.status = 'OPEN'
      AND i.next_attempt_at IS NULL
      AND a.decline_code = 'action_expired'
);

COMMENT ON FUNCTION billing.has_expired_action IS
'True where the last payment attempt of an open invoice ended because its customer did not act in time.';
