CREATE OR REPLACE FUNCTION billing_ops.create_gateway_account(
    p_code text,
    p_adapter text,
    p_mode text DEFAULT 'TEST',
    p_request_timeout interval DEFAULT '30 seconds',
    p_lease_margin interval DEFAULT '60 seconds',
    p_key_lifetime interval DEFAULT '24 hours',
    p_settle_window interval DEFAULT '15 minutes',
    p_processing_deadline interval DEFAULT '14 days',
    p_confirm_success boolean DEFAULT false,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.gateway_account
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      database_identity, so that a LIVE account and mark_test_database exclude each other
-- Writes:     gateway_account
-- Raises:     SB101 malformed, or LIVE in a test database, SB104 p_as_of, SB309 the code exists
-- Idempotent: no
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_account billing.gateway_account;
BEGIN
    PERFORM billing.require_code(p_code, 'p_code', '^[a-z0-9][a-z0-9_-]*$');
    PERFORM billing.require_code(p_adapter, 'p_adapter', '^[a-z0-9][a-z0-9_-]*$');
    PERFORM billing.require_choice(p_mode, 'p_mode', '{TEST,LIVE}');
    PERFORM billing.require_flag(p_confirm_success, 'p_confirm_success');
    PERFORM billing.require_span(p_request_timeout, 'p_request_timeout', '1 second', '10 minutes');
    PERFORM billing.require_span(p_lease_margin, 'p_lease_margin', '1 second', '1 hour');
    PERFORM billing.require_span(p_key_lifetime, 'p_key_lifetime', '1 minute', '366 days');
    PERFORM billing.require_span(p_settle_window, 'p_settle_window', '0 seconds', '1 day');
    PERFORM billing.require_span(p_processing_deadline, 'p_processing_deadline', '1 second', '90 days');
    PERFORM 1 FROM billing.database_identity AS d FOR NO KEY UPDATE;
    IF p_mode = 'LIVE' AND billing.is_test_database() THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'a test database takes no LIVE gateway account',
            HINT = 'Its clock can be set, so that real money would move at made-up times.';
    END IF;

    INSERT INTO billing.gateway_account (
        code, adapter, mode, request_timeout, lease_margin, key_lifetime, settle_window, processing_deadline,
        confirm_success, created_at
    )
    VALUES (
        p_code, p_adapter, p_mode, p_request_timeout, p_lease_margin, p_key_lifetime, p_settle_window,
        p_processing_deadline, p_confirm_success, v_as_of
    )
    ON CONFLICT ON CONSTRAINT gateway_account_code_is_unique DO NOTHING
    RETURNING * INTO v_account;
    IF v_account.gateway_account_id IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB309',
            MESSAGE = format('gateway account %s exists', p_code),
            DETAIL = (SELECT a.gateway_account_id::text FROM billing.gateway_account AS a WHERE a.code = p_code);
    END IF;
    RETURN NEXT v_account;
END;
$function$;

COMMENT ON FUNCTION billing_ops.create_gateway_account IS
'Creates a merchant account at a gateway, with its limits as data. Rates and minimum amounts follow by set_gateway_rate and set_gateway_minimum.';
