CREATE OR REPLACE FUNCTION billing.grace_end(
    p_subscription billing.subscription
)
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
RETURN (
    SELECT min(greatest(i.period_start, i.issued_at) + dp.grace)
    FROM billing.invoice AS i
    INNER JOIN billing.dunning_policy AS dp ON dp.dunning_policy_id = p_subscription.dunning_policy_id
    WHERE i.customer_id = p_subscription.customer_id
      AND i.subscription_id = p_subscription.subscription_id
      AND i.status = 'OPEN'
      AND i.drives_status
      AND i.failure_count > 0
);

COMMENT ON FUNCTION billing.grace_end IS
'When the first grace ends of the failing invoices that are still owed, each from the later of period start and issue; NULL where the policy sets none, or none of them is failing any more.';
