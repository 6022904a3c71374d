CREATE OR REPLACE FUNCTION billing_ops.adopt_database(
    p_mode text,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.database_identity
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      database_identity
-- Writes:     database_identity, gateway_account; with restored all sequences, invoice, payment_attempt, refund
-- Raises:     SB101 neither clone nor restored, SB104 p_as_of
-- Idempotent: yes, but for the prefix and the sequences
-- clone: another database goes on under the old prefix, so this one takes a new one, and its LIVE accounts are off.
-- restored: this one takes the place of the lost one under its prefix. The lost one may have made tries and ids that
-- this one does not know: ids jump over them, and every open try and every next try is looked up before it is sent.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_identity billing.database_identity;
BEGIN
    PERFORM billing.require_choice(lower(p_mode), 'p_mode', '{clone,restored}');
    UPDATE billing.database_identity AS d
    SET system_identifier = c.system_identifier,
        key_prefix = CASE lower(p_mode)
            WHEN 'clone' THEN substr(md5(gen_random_uuid()::text), 1, 8) ELSE d.key_prefix
        END
    FROM pg_catalog.pg_control_system() AS c
    RETURNING d.* INTO STRICT v_identity;

    IF lower(p_mode) = 'clone' THEN
        UPDATE billing.gateway_account AS a
        SET disabled_at = coalesce(a.disabled_at, v_as_of)
        WHERE a.mode = 'LIVE';
    ELSE
        PERFORM billing.jump_sequences();
        PERFORM billing.doubt_everything(v_as_of);
    END IF;
    RETURN NEXT v_identity;
END;
$function$;

COMMENT ON FUNCTION billing_ops.adopt_database IS
'Says what a copy of a database is, which until then sends nothing: clone (a new prefix for gateway keys, LIVE accounts off) or restored (the same prefix, ids jump, and everything unpaid is looked up at the gateway before it is charged). For a copy of the files, which looks like its original, call it before the first worker starts.';
