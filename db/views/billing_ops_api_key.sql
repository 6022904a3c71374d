CREATE OR REPLACE VIEW billing_ops.api_key AS
SELECT
    k.api_key_id,
    k.name,
    CASE
        WHEN k.revoked_at IS NOT NULL THEN 'REVOKED'
        WHEN k.expires_at <= clock_timestamp() THEN 'EXPIRED'
        WHEN k.rotated_at IS NOT NULL THEN 'ROTATED'
        ELSE 'ACTIVE'
    END AS status,
    k.scopes,
    k.customer_id,
    k.replaces_api_key_id,
    k.created_at,
    k.created_by,
    k.rotated_at,
    k.expires_at,
    k.revoked_at,
    k.revoked_by
FROM billing.api_key AS k;

COMMENT ON VIEW billing_ops.api_key IS 'Keys of those who call over HTTP, without what a key could be recognised by.';
COMMENT ON COLUMN billing_ops.api_key.api_key_id IS 'Key; says nothing about its secret.';
COMMENT ON COLUMN billing_ops.api_key.name IS 'Who calls with it.';
COMMENT ON COLUMN billing_ops.api_key.status IS
'ACTIVE, ROTATED (still taken until expires_at, so that callers can change over), EXPIRED or REVOKED.';
COMMENT ON COLUMN billing_ops.api_key.scopes IS 'read, write, operate.';
COMMENT ON COLUMN billing_ops.api_key.customer_id IS 'The one customer whose things it reaches; NULL = all.';
COMMENT ON COLUMN billing_ops.api_key.replaces_api_key_id IS 'The key that it was rotated from; NULL = none.';
COMMENT ON COLUMN billing_ops.api_key.created_at IS 'Wall clock of its creation.';
COMMENT ON COLUMN billing_ops.api_key.created_by IS 'Who created it.';
COMMENT ON COLUMN billing_ops.api_key.rotated_at IS 'Wall clock since when a newer key bears its name; NULL = it is the newest.';
COMMENT ON COLUMN billing_ops.api_key.expires_at IS 'Wall clock from when on it is refused; NULL = never.';
COMMENT ON COLUMN billing_ops.api_key.revoked_at IS 'Wall clock since when it is refused; NULL = not.';
COMMENT ON COLUMN billing_ops.api_key.revoked_by IS 'Who revoked it.';
