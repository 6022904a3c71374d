CREATE OR REPLACE FUNCTION billing.refundable_of_attempt(
    p_attempt billing.payment_attempt
)
RETURNS bigint
LANGUAGE sql
STABLE
SET search_path = ''
RETURN CASE WHEN p_attempt.gateway_payment_id IS NULL THEN 0 ELSE coalesce(p_attempt.booked_amount, 0) END - coalesce(
    (
        SELECT sum(f.amount)
        FROM billing.refund AS f
        WHERE f.customer_id = p_attempt.customer_id
          AND f.attempt_id = p_attempt.attempt_id
          AND f.status <> 'FAILED'
          AND f.purpose <> 'LATE_PAYMENT'
    ),
    0
)::bigint;

COMMENT ON FUNCTION billing.refundable_of_attempt IS
'What of the money that an attempt booked to its invoice may yet go back, in minor units; refunds on their way count.';
