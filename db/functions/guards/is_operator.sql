CREATE OR REPLACE FUNCTION billing.is_operator()
RETURNS boolean
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN pg_has_role(billing.caller_role(), 'billing_operator', 'MEMBER');

COMMENT ON FUNCTION billing.is_operator IS
'True where the calling role is a member of billing_operator; a superuser is a member of everything.';
