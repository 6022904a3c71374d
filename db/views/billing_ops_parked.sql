CREATE OR REPLACE VIEW billing_ops.parked AS
SELECT
    s.customer_id,
    s.subscription_id,
    s.status,
    s.current_period_end AS due_at,
    s.parked_at,
    s.park_reason
FROM billing.subscription AS s
WHERE s.parked_at IS NOT NULL;

COMMENT ON VIEW billing_ops.parked IS
'Subscriptions whose renewal failed on its data. Access stays; remove the cause, then billing_ops.unpark.';
COMMENT ON COLUMN billing_ops.parked.customer_id IS 'Customer.';
COMMENT ON COLUMN billing_ops.parked.subscription_id IS 'Subscription.';
COMMENT ON COLUMN billing_ops.parked.status IS 'Status of the subscription.';
COMMENT ON COLUMN billing_ops.parked.due_at IS 'Since when the renewal is due.';
COMMENT ON COLUMN billing_ops.parked.parked_at IS 'Since when it is set aside.';
COMMENT ON COLUMN billing_ops.parked.park_reason IS 'SQLSTATE and message of the failed renewal.';
