CREATE OR REPLACE FUNCTION billing.block_methods(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      payment_method, in key order
-- Writes:     payment_method
-- Raises:     nothing
-- Idempotent: yes
BEGIN
    PERFORM 1
    FROM billing.payment_method AS m
    WHERE (m.customer_id, m.payment_method_id) IN (
        SELECT a.customer_id, a.payment_method_id
        FROM unnest(p_judgements) AS j
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = j.customer_id AND a.attempt_id = j.attempt_id
        WHERE j.verdict = 'APPLIED' AND j.decline_class IN ('HARD', 'CUSTOMER')
    )
    ORDER BY m.customer_id, m.payment_method_id
    FOR NO KEY UPDATE;

    UPDATE billing.payment_method AS m
    SET blocked_at = p_as_of, blocked_code = j.code
    FROM unnest(p_judgements) AS j
    INNER JOIN billing.payment_attempt AS a ON a.customer_id = j.customer_id AND a.attempt_id = j.attempt_id
    WHERE j.verdict = 'APPLIED'
      AND j.decline_class IN ('HARD', 'CUSTOMER')
      AND m.customer_id = a.customer_id
      AND m.payment_method_id = a.payment_method_id
      AND m.blocked_at IS NULL;
END;
$function$;

COMMENT ON FUNCTION billing.block_methods IS
'Stops automatic attempts on a method that was declined for good: lost, stolen, invalid, expired, or in need of the customer.';
