CREATE OR REPLACE FUNCTION billing_ops.mark_test_database()
RETURNS SETOF billing.database_identity
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      database_identity, so that create_gateway_account waits
-- Writes:     database_identity
-- Raises:     SB312 there is a LIVE gateway account, or there are customers already
-- Idempotent: yes
DECLARE
    v_identity billing.database_identity;
BEGIN
    SELECT d.* INTO STRICT v_identity FROM billing.database_identity AS d FOR NO KEY UPDATE;
    IF v_identity.is_test THEN
        RETURN NEXT v_identity;
        RETURN;
    END IF;
    IF EXISTS (SELECT 1 FROM billing.gateway_account AS a WHERE a.mode = 'LIVE')
        OR EXISTS (SELECT 1 FROM billing.customer)
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB312',
            MESSAGE = 'a database that is in use cannot become a test database',
            HINT = 'Mark a new one, before the first customer.';
    END IF;

    UPDATE billing.database_identity AS d SET is_test = true RETURNING d.* INTO STRICT v_identity;
    RETURN NEXT v_identity;
END;
$function$;

COMMENT ON FUNCTION billing_ops.mark_test_database IS
'Makes a new database a test database for ever: its clock can be set, any p_as_of is taken, and no LIVE gateway account.';
