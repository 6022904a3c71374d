CREATE OR REPLACE FUNCTION billing.is_off(
    p_account billing.gateway_account
)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
RETURN p_account.disabled_at IS NOT NULL OR billing.is_foreign_database();

COMMENT ON FUNCTION billing.is_off IS
'True where nothing may be sent to a gateway account nor asked of it: this database is a clone, or a copy of which nobody has said what it is.';
