CREATE OR REPLACE FUNCTION billing.is_foreign_database()
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
RETURN (
    SELECT d.system_identifier <> c.system_identifier
    FROM billing.database_identity AS d
    CROSS JOIN pg_catalog.pg_control_system() AS c
);

COMMENT ON FUNCTION billing.is_foreign_database IS
'True where this database has come to another server than the one that it was made or adopted on: restored from a dump, or cloned. Until billing_ops.adopt_database says which, it sends nothing.';
