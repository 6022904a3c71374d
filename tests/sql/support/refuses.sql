CREATE FUNCTION billing_test.refuses(
    p_statement text,
    p_sqlstate text,
    p_description text,
    p_role text DEFAULT NULL,
    p_detail text DEFAULT NULL
)
RETURNS SETOF text
LANGUAGE plpgsql
AS $function$
DECLARE
    c_before CONSTANT text := billing_test.fingerprint();
    v_sqlstate text := 'none';
    v_message text;
    v_detail text;
    v_is_good boolean;
BEGIN
    BEGIN
        PERFORM set_config('role', coalesce(p_role, 'none'), true);
        EXECUTE p_statement;
        PERFORM set_config('role', 'none', true);
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS
            v_sqlstate := RETURNED_SQLSTATE, v_message := MESSAGE_TEXT, v_detail := PG_EXCEPTION_DETAIL;
    END;

    v_is_good := v_sqlstate = p_sqlstate
        AND (p_detail IS NULL OR v_detail = p_detail)
        AND billing_test.fingerprint() = c_before;
    RETURN NEXT tap.ok(v_is_good, p_description);
    IF NOT v_is_good THEN
        RETURN NEXT tap.diag(
            format('%s gave %s: %s; %s', left(p_statement, 500), v_sqlstate, left(v_message, 500), v_detail)
        );
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing_test.refuses IS
'Tests that a statement, where p_role is given as that role, raises this SQLSTATE (and this DETAIL) and changes no row of any table.';
