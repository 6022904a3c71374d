CREATE OR REPLACE VIEW billing_api.resource AS
SELECT
    r.resource_id,
    r.customer_id,
    r.external_ref AS resource_ref,
    r.suspended_by_billing_at,
    r.suspended_by_admin_at,
    r.created_at
FROM billing.resource AS r
WHERE billing.in_customer_scope(r.customer_id);

COMMENT ON VIEW billing_api.resource IS 'What is sold to customers within the scope of the caller, and whether it is suspended.';
COMMENT ON COLUMN billing_api.resource.resource_id IS 'Resource.';
COMMENT ON COLUMN billing_api.resource.customer_id IS 'Customer who pays for it.';
COMMENT ON COLUMN billing_api.resource.resource_ref IS
'Name in the calling system, unique per customer; "default" where the caller names none.';
COMMENT ON COLUMN billing_api.resource.suspended_by_billing_at IS
'Since when billing has it suspended after unpaid invoices; lifted by payment. NULL = not.';
COMMENT ON COLUMN billing_api.resource.suspended_by_admin_at IS
'Since when an administrator has it suspended; never lifted by billing. NULL = not.';
COMMENT ON COLUMN billing_api.resource.created_at IS 'Business time of creation.';
