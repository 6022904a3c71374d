CREATE OR REPLACE VIEW billing_api.payment_method AS
SELECT
    m.payment_method_id,
    m.customer_id,
    a.code AS gateway_account,
    m.brand,
    m.last4,
    m.exp_month,
    m.exp_year,
    m.is_default,
    m.blocked_at,
    m.blocked_code,
    m.removed_at,
    m.created_at
FROM billing.payment_method AS m
INNER JOIN billing.gateway_account AS a ON m.gateway_account_id = a.gateway_account_id
WHERE billing.in_customer_scope(m.customer_id);

COMMENT ON VIEW billing_api.payment_method IS
'Payment methods within the scope of the caller, removed ones included; without token and fingerprint.';
COMMENT ON COLUMN billing_api.payment_method.payment_method_id IS 'Payment method.';
COMMENT ON COLUMN billing_api.payment_method.customer_id IS 'Customer who owns it.';
COMMENT ON COLUMN billing_api.payment_method.gateway_account IS 'Code of the gateway account that knows the token.';
COMMENT ON COLUMN billing_api.payment_method.brand IS 'Card brand for display, or NULL.';
COMMENT ON COLUMN billing_api.payment_method.last4 IS 'Last four digits for display, or NULL.';
COMMENT ON COLUMN billing_api.payment_method.exp_month IS 'Expiry month 1 to 12, or NULL.';
COMMENT ON COLUMN billing_api.payment_method.exp_year IS 'Expiry year, four digits, or NULL.';
COMMENT ON COLUMN billing_api.payment_method.is_default IS
'Used where the subscription names no method. At most one per customer.';
COMMENT ON COLUMN billing_api.payment_method.blocked_at IS
'Since when automatic attempts on it are stopped by a HARD or CUSTOMER decline; NULL = not.';
COMMENT ON COLUMN billing_api.payment_method.blocked_code IS 'Decline code that blocked it.';
COMMENT ON COLUMN billing_api.payment_method.removed_at IS 'When it was removed; NULL = usable.';
COMMENT ON COLUMN billing_api.payment_method.created_at IS 'Business time of creation.';
