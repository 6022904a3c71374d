CREATE FUNCTION billing_test.make_test_database()
RETURNS boolean
LANGUAGE sql
AS $function$
    UPDATE billing.database_identity SET is_test = true RETURNING is_test;
$function$;

COMMENT ON FUNCTION billing_test.make_test_database IS
'Makes this a test database although it has customers already, which billing_ops.mark_test_database would refuse.';
