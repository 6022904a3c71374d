CREATE OR REPLACE VIEW billing_ops.dunning_board AS
SELECT
    i.customer_id,
    i.subscription_id,
    i.invoice_id,
    s.status AS subscription_status,
    i.amount_due,
    i.currency,
    i.failure_count,
    cardinality(d.retry_after) AS retries,
    l.decline_code,
    l.decline_class,
    i.first_failed_at,
    i.last_failed_at,
    i.next_attempt_at,
    i.dunning_ends_at,
    s.access_until,
    d.code AS dunning_policy
FROM billing.invoice AS i
INNER JOIN billing.subscription AS s ON i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id
INNER JOIN billing.dunning_policy AS d ON s.dunning_policy_id = d.dunning_policy_id
LEFT JOIN LATERAL (
    SELECT
        t.decline_code,
        t.decline_class
    FROM billing.payment_attempt AS t
    WHERE t.customer_id = i.customer_id AND t.invoice_id = i.invoice_id AND t.status = 'DECLINED'
    ORDER BY t.attempt_no DESC
    LIMIT 1
) AS l ON true
WHERE i.status = 'OPEN' AND i.failure_count > 0;

COMMENT ON VIEW billing_ops.dunning_board IS
'Open invoices that were declined: how often, why, when the next try is, and when the policy gives up.';
COMMENT ON COLUMN billing_ops.dunning_board.customer_id IS 'Customer who owes it.';
COMMENT ON COLUMN billing_ops.dunning_board.subscription_id IS 'Subscription.';
COMMENT ON COLUMN billing_ops.dunning_board.invoice_id IS 'Invoice.';
COMMENT ON COLUMN billing_ops.dunning_board.subscription_status IS 'Status of the subscription.';
COMMENT ON COLUMN billing_ops.dunning_board.amount_due IS 'What is owed, in minor units.';
COMMENT ON COLUMN billing_ops.dunning_board.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing_ops.dunning_board.failure_count IS 'Steps of the ladder taken.';
COMMENT ON COLUMN billing_ops.dunning_board.retries IS 'Retries that the policy allows in all.';
COMMENT ON COLUMN billing_ops.dunning_board.decline_code IS 'Code of the last decline; NULL = no attempt was declined.';
COMMENT ON COLUMN billing_ops.dunning_board.decline_class IS 'SOFT, HARD or CUSTOMER.';
COMMENT ON COLUMN billing_ops.dunning_board.first_failed_at IS 'Business time of the first failure.';
COMMENT ON COLUMN billing_ops.dunning_board.last_failed_at IS 'Business time of the last failure.';
COMMENT ON COLUMN billing_ops.dunning_board.next_attempt_at IS 'Business time of the next try; NULL = none planned.';
COMMENT ON COLUMN billing_ops.dunning_board.dunning_ends_at IS
'When the policy ends the subscription; NULL = the ladder goes on.';
COMMENT ON COLUMN billing_ops.dunning_board.access_until IS 'End of access; NULL = as long as it is PAST_DUE.';
COMMENT ON COLUMN billing_ops.dunning_board.dunning_policy IS 'Code of the policy.';
