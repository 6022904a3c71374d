CREATE OR REPLACE VIEW billing_api.price AS
SELECT
    pr.price_id,
    p.code AS plan_code,
    pr.amount,
    pr.currency,
    pr.interval_unit,
    pr.interval_count,
    pr.trial_days,
    pr.effective_from,
    pr.created_at
FROM billing.price AS pr
INNER JOIN billing.plan AS p ON pr.plan_id = p.plan_id;

COMMENT ON VIEW billing_api.price IS
'Price versions of the plans: amount per unit and period in minor units. The latest that is effective is what new subscriptions pin.';
COMMENT ON COLUMN billing_api.price.price_id IS 'Price version.';
COMMENT ON COLUMN billing_api.price.plan_code IS 'Plan.';
COMMENT ON COLUMN billing_api.price.amount IS 'Amount per unit and period in minor units of the currency.';
COMMENT ON COLUMN billing_api.price.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing_api.price.interval_unit IS 'DAY, WEEK, MONTH or YEAR.';
COMMENT ON COLUMN billing_api.price.interval_count IS 'How many of the unit make one period.';
COMMENT ON COLUMN billing_api.price.trial_days IS 'Days of trial for a new subscription, 0 = none.';
COMMENT ON COLUMN billing_api.price.effective_from IS 'From when new subscriptions get this version.';
COMMENT ON COLUMN billing_api.price.created_at IS 'Business time of creation.';
