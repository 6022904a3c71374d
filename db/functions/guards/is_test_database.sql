CREATE OR REPLACE FUNCTION billing.is_test_database()
RETURNS boolean
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN (SELECT i.is_test FROM billing.database_identity AS i);

COMMENT ON FUNCTION billing.is_test_database IS 'True where billing_ops.mark_test_database() has been called.';
