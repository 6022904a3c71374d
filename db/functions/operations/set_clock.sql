CREATE OR REPLACE FUNCTION billing_ops.set_clock(
    p_now timestamptz
)
RETURNS timestamptz
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      test_clock
-- Writes:     test_clock
-- Raises:     SB104 not an instant of the years 1970 to 9999, SB312 not a test database
-- Idempotent: yes
DECLARE
    c_now CONSTANT timestamptz := date_trunc('second', p_now, 'UTC');
BEGIN
    IF NOT billing.is_test_database() THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB312',
            MESSAGE = 'the clock of this database cannot be set',
            HINT = 'Only a database marked by billing_ops.mark_test_database() has one that can.';
    END IF;
    IF c_now IS NULL THEN
        DELETE FROM billing.test_clock;
        RETURN billing.now();
    END IF;
    IF NOT c_now BETWEEN '1970-01-01' AND '9999-12-31' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB104',
            MESSAGE = 'p_now must be an instant of the years 1970 to 9999';
    END IF;
    INSERT INTO billing.test_clock (now_at)
    VALUES (c_now)
    ON CONFLICT ON CONSTRAINT test_clock_pkey DO UPDATE SET now_at = excluded.now_at;
    RETURN c_now;
END;
$function$;

COMMENT ON FUNCTION billing_ops.set_clock IS
'Freezes the business clock of a test database at p_now, cut to whole seconds; NULL = the real clock again. Returns what billing.now() answers.';
