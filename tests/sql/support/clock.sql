CREATE FUNCTION billing_test.clock(
    p_now timestamptz
)
RETURNS timestamptz
LANGUAGE plpgsql
AS $function$
BEGIN
    PERFORM billing_ops.mark_test_database();
    RETURN billing_ops.set_clock(p_now);
END;
$function$;

COMMENT ON FUNCTION billing_test.clock IS 'Makes this a test database and sets its clock.';
