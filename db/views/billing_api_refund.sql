CREATE OR REPLACE VIEW billing_api.refund AS
SELECT
    f.refund_id,
    f.customer_id,
    f.invoice_id,
    f.attempt_id,
    f.refund_no,
    f.purpose,
    f.status,
    f.amount,
    f.currency,
    f.idempotency_key,
    a.code AS gateway_account,
    f.gateway_payment_id,
    f.gateway_refund_id,
    f.failure_code,
    f.requested_at,
    f.ended_at
FROM billing.refund AS f
INNER JOIN billing.gateway_account AS a ON f.gateway_account_id = a.gateway_account_id
WHERE billing.in_customer_scope(f.customer_id);

COMMENT ON VIEW billing_api.refund IS 'Money that goes back to customers within the scope of the caller.';
COMMENT ON COLUMN billing_api.refund.refund_id IS 'Refund.';
COMMENT ON COLUMN billing_api.refund.customer_id IS 'Customer.';
COMMENT ON COLUMN billing_api.refund.invoice_id IS 'Invoice that the money was paid for.';
COMMENT ON COLUMN billing_api.refund.attempt_id IS 'Attempt that captured it.';
COMMENT ON COLUMN billing_api.refund.refund_no IS 'Number within the invoice, from 1.';
COMMENT ON COLUMN billing_api.refund.purpose IS
'REQUESTED by a caller, UNUSED_TIME of a cancelled subscription, or LATE_PAYMENT: money that never paid the invoice.';
COMMENT ON COLUMN billing_api.refund.status IS
'REQUESTED (to be sent), STARTED (claimed for a send), UNKNOWN, PROCESSING (accepted by the gateway), SUCCEEDED or FAILED.';
COMMENT ON COLUMN billing_api.refund.amount IS 'Amount to send back, in minor units.';
COMMENT ON COLUMN billing_api.refund.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing_api.refund.idempotency_key IS
'<prefix>-inv-<invoice id>-refund-<n>: key and reference at the gateway, unique in the world.';
COMMENT ON COLUMN billing_api.refund.gateway_account IS 'Code of the gateway account that captured the payment.';
COMMENT ON COLUMN billing_api.refund.gateway_payment_id IS 'Payment at the gateway.';
COMMENT ON COLUMN billing_api.refund.gateway_refund_id IS 'Refund at the gateway, once known; unique per account.';
COMMENT ON COLUMN billing_api.refund.failure_code IS 'Why the gateway refused it for good.';
COMMENT ON COLUMN billing_api.refund.requested_at IS 'Business time of the request.';
COMMENT ON COLUMN billing_api.refund.ended_at IS 'Business time of the definite answer.';
