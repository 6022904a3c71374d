CREATE OR REPLACE VIEW billing_api.plan AS
SELECT
    p.plan_id,
    p.code AS plan_code,
    p.name,
    p.trial_once_per,
    p.grant_first_allowed,
    p.created_at
FROM billing.plan AS p;

COMMENT ON VIEW billing_api.plan IS 'What can be subscribed to. Prices stand in billing_api.price.';
COMMENT ON COLUMN billing_api.plan.plan_id IS 'Plan.';
COMMENT ON COLUMN billing_api.plan.plan_code IS 'Code used by callers, unique.';
COMMENT ON COLUMN billing_api.plan.name IS 'Name for people, printed on invoice lines.';
COMMENT ON COLUMN billing_api.plan.trial_once_per IS 'A trial is given once per CUSTOMER, PLAN or RESOURCE.';
COMMENT ON COLUMN billing_api.plan.grant_first_allowed IS
'True: any caller may sign up with GRANT_FIRST; false: only an operator may.';
COMMENT ON COLUMN billing_api.plan.created_at IS 'Business time of creation.';
