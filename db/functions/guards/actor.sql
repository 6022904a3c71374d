CREATE OR REPLACE FUNCTION billing.actor()
RETURNS text
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN left(
    coalesce(
        nullif(current_setting('billing.actor', true), ''),
        nullif(current_setting('role'), 'none'),
        session_user::text
    ),
    200
);

COMMENT ON FUNCTION billing.actor IS
'Who acts, for logs and ledger: the setting billing.actor where the caller has set it, else the calling role.';
