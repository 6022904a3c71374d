CREATE OR REPLACE FUNCTION billing.caller_role()
RETURNS text
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN coalesce(nullif(current_setting('role'), 'none'), session_user::text);

COMMENT ON FUNCTION billing.caller_role IS
'The role that called: the one of SET ROLE, else the login. Unlike current_user it is the same inside SECURITY DEFINER.';
