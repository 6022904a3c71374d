CREATE OR REPLACE VIEW billing_api.invoice AS
SELECT
    i.invoice_id,
    i.customer_id,
    i.subscription_id,
    i.kind,
    i.status,
    i.currency,
    i.total,
    i.credit_applied,
    i.amount_paid,
    i.carried,
    i.amount_due,
    i.period_start,
    i.period_end,
    i.attempt_count,
    i.failure_count,
    i.next_attempt_at,
    i.paid_at,
    i.plan_code,
    i.unit_amount,
    i.quantity,
    a.code AS gateway_account,
    i.issued_at,
    i.failed_at,
    i.voided_at
FROM billing.invoice AS i
LEFT JOIN billing.gateway_account AS a ON i.gateway_account_id = a.gateway_account_id
WHERE billing.in_customer_scope(i.customer_id);

COMMENT ON VIEW billing_api.invoice IS
'Invoices within the scope of the caller, in minor units: total = credit_applied + amount_paid + carried + amount_due.';
COMMENT ON COLUMN billing_api.invoice.invoice_id IS 'Invoice.';
COMMENT ON COLUMN billing_api.invoice.customer_id IS 'Customer who owes it.';
COMMENT ON COLUMN billing_api.invoice.subscription_id IS 'Subscription; NULL for a MANUAL invoice.';
COMMENT ON COLUMN billing_api.invoice.kind IS 'INITIAL, RENEWAL, CHANGE or MANUAL.';
COMMENT ON COLUMN billing_api.invoice.status IS 'DRAFT, OPEN, PAID, FAILED (given up) or VOID.';
COMMENT ON COLUMN billing_api.invoice.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing_api.invoice.total IS 'Sum of the lines in minor units, never negative.';
COMMENT ON COLUMN billing_api.invoice.credit_applied IS 'Paid from the credit of the customer, in minor units.';
COMMENT ON COLUMN billing_api.invoice.amount_paid IS 'Paid through a gateway, in minor units.';
COMMENT ON COLUMN billing_api.invoice.carried IS
'Below the minimum of the gateway and carried to the next invoice, in minor units.';
COMMENT ON COLUMN billing_api.invoice.amount_due IS 'What remains, in minor units.';
COMMENT ON COLUMN billing_api.invoice.period_start IS
'Start of the service period; provisional while the subscription is INCOMPLETE.';
COMMENT ON COLUMN billing_api.invoice.period_end IS 'End of the service period, exclusive.';
COMMENT ON COLUMN billing_api.invoice.attempt_count IS 'Number of attempts, and the number of the last one.';
COMMENT ON COLUMN billing_api.invoice.failure_count IS
'Steps of the retry ladder taken: declines and rungs that passed untried.';
COMMENT ON COLUMN billing_api.invoice.next_attempt_at IS
'Business time from which it may be attempted (or its open attempt sent again); NULL = not now.';
COMMENT ON COLUMN billing_api.invoice.paid_at IS 'Business time of payment.';
COMMENT ON COLUMN billing_api.invoice.plan_code IS 'Plan at issue.';
COMMENT ON COLUMN billing_api.invoice.unit_amount IS 'Price per unit at issue, in minor units.';
COMMENT ON COLUMN billing_api.invoice.quantity IS 'Quantity at issue.';
COMMENT ON COLUMN billing_api.invoice.gateway_account IS
'Code of the gateway account that collects it; NULL = no payment method.';
COMMENT ON COLUMN billing_api.invoice.issued_at IS 'Business time of issue.';
COMMENT ON COLUMN billing_api.invoice.failed_at IS 'Business time of giving up; kept when it is paid late.';
COMMENT ON COLUMN billing_api.invoice.voided_at IS 'Business time of voiding.';
