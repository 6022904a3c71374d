CREATE FUNCTION billing_test.run_as(
    p_role text,
    p_statement text
)
RETURNS void
LANGUAGE plpgsql
AS $function$
-- pgTAP keeps its books in temporary tables of the testing login, so a test cannot stay in another role: it hands over
-- one statement, as in throws_ok($$SELECT billing_test.run_as('billing_app', 'DELETE FROM billing.invoice')$$, '42501').
BEGIN
    PERFORM set_config('role', p_role, true);
    EXECUTE p_statement;
    PERFORM set_config('role', 'none', true);
END;
$function$;

COMMENT ON FUNCTION billing_test.run_as IS
'Executes one statement as a role of the engine and comes back, also when it fails.';
