CREATE OR REPLACE VIEW billing_api.customer AS
SELECT
    c.customer_id,
    c.external_ref,
    c.status,
    c.currency,
    c.time_zone,
    c.created_at
FROM billing.customer AS c
WHERE billing.in_customer_scope(c.customer_id);

COMMENT ON VIEW billing_api.customer IS 'Customers within the scope of the caller, without personal data.';
COMMENT ON COLUMN billing_api.customer.customer_id IS 'Leads every key of the rows of this customer.';
COMMENT ON COLUMN billing_api.customer.external_ref IS 'Name of this customer in the calling system, unique.';
COMMENT ON COLUMN billing_api.customer.status IS
'ACTIVE, SUSPENDED (no access, no recovery of resources) or CLOSED (erased).';
COMMENT ON COLUMN billing_api.customer.currency IS 'Currency of new subscriptions, ISO 4217.';
COMMENT ON COLUMN billing_api.customer.time_zone IS 'IANA zone, copied into each subscription at sign-up.';
COMMENT ON COLUMN billing_api.customer.created_at IS 'Business time of creation.';
