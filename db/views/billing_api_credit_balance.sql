CREATE OR REPLACE VIEW billing_api.credit_balance AS
SELECT
    b.customer_id,
    b.currency,
    b.balance
FROM billing.credit_balance AS b
WHERE billing.in_customer_scope(b.customer_id);

COMMENT ON VIEW billing_api.credit_balance IS 'Credit left per customer and currency, in minor units, within the scope of the caller.';
COMMENT ON COLUMN billing_api.credit_balance.customer_id IS 'Customer.';
COMMENT ON COLUMN billing_api.credit_balance.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing_api.credit_balance.balance IS 'Credit left, in minor units; the sum of the ledger.';
