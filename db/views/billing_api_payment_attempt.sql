CREATE OR REPLACE VIEW billing_api.payment_attempt AS
SELECT
    t.attempt_id,
    t.customer_id,
    t.invoice_id,
    t.attempt_no,
    t.idempotency_key,
    t.status,
    t.amount,
    t.currency,
    t.gateway_payment_id,
    t.decline_code,
    t.decline_class,
    a.code AS gateway_account,
    t.payment_method_id,
    t.action_expires_at,
    t.send_count,
    t.lookup_count,
    t.started_at,
    t.ended_at
FROM billing.payment_attempt AS t
LEFT JOIN billing.gateway_account AS a ON t.gateway_account_id = a.gateway_account_id
WHERE billing.in_customer_scope(t.customer_id);

COMMENT ON VIEW billing_api.payment_attempt IS
'Efforts to collect the invoices within the scope of the caller; without the token that was sent.';
COMMENT ON COLUMN billing_api.payment_attempt.attempt_id IS 'Payment attempt.';
COMMENT ON COLUMN billing_api.payment_attempt.customer_id IS 'Customer.';
COMMENT ON COLUMN billing_api.payment_attempt.invoice_id IS 'Invoice to collect.';
COMMENT ON COLUMN billing_api.payment_attempt.attempt_no IS
'Number of the try within the invoice, from 1; moves only after a definite answer.';
COMMENT ON COLUMN billing_api.payment_attempt.idempotency_key IS
'<prefix>-inv-<invoice id>-try-<n>: key and reference at the gateway, unique in the world.';
COMMENT ON COLUMN billing_api.payment_attempt.status IS
'Rank: STARTED < UNKNOWN < REQUIRES_ACTION < PROCESSING < DECLINED < SUCCEEDED; ABANDONED ends an attempt that was never charged.';
COMMENT ON COLUMN billing_api.payment_attempt.amount IS 'Amount sent, in minor units.';
COMMENT ON COLUMN billing_api.payment_attempt.currency IS 'Currency sent, ISO 4217.';
COMMENT ON COLUMN billing_api.payment_attempt.gateway_payment_id IS
'Payment at the gateway, once known; unique per account.';
COMMENT ON COLUMN billing_api.payment_attempt.decline_code IS 'Code of the decline.';
COMMENT ON COLUMN billing_api.payment_attempt.decline_class IS 'SOFT, HARD or CUSTOMER.';
COMMENT ON COLUMN billing_api.payment_attempt.gateway_account IS
'Code of the gateway account; NULL where there was no payment method.';
COMMENT ON COLUMN billing_api.payment_attempt.payment_method_id IS 'Payment method; NULL where there was none.';
COMMENT ON COLUMN billing_api.payment_attempt.action_expires_at IS
'Until when the customer may complete the required action.';
COMMENT ON COLUMN billing_api.payment_attempt.send_count IS 'Claims for a send, the first included.';
COMMENT ON COLUMN billing_api.payment_attempt.lookup_count IS 'Claims for a look-up since the last send.';
COMMENT ON COLUMN billing_api.payment_attempt.started_at IS
'Business time of the first commit, from which the life of the key counts.';
COMMENT ON COLUMN billing_api.payment_attempt.ended_at IS 'Business time of the definite answer.';
