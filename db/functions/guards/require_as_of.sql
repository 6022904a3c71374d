CREATE OR REPLACE FUNCTION billing.require_as_of(
    p_as_of timestamptz
)
RETURNS timestamptz
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB104 NULL, not a finite instant, after billing.now(), or too far before it
-- Idempotent: yes
-- A test database takes any instant of four-digit years: tests drive time by this parameter.
DECLARE
    v_now CONSTANT timestamptz := billing.now();
    v_as_of CONSTANT timestamptz := date_trunc('second', p_as_of, 'UTC');
BEGIN
    IF v_as_of IS NULL OR NOT v_as_of BETWEEN '1970-01-01' AND '9999-12-31' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB104',
            MESSAGE = 'p_as_of must be an instant of the years 1970 to 9999',
            HINT = 'Leave it out: its default is billing.now().';
    END IF;
    IF billing.is_test_database() THEN
        RETURN v_as_of;
    END IF;
    IF v_as_of > v_now THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB104',
            MESSAGE = format('p_as_of %s lies in the future', billing.to_rfc3339(v_as_of)),
            DETAIL = format('billing.now() is %s', billing.to_rfc3339(v_now)),
            HINT = 'Leave it out: its default is billing.now().';
    END IF;
    IF v_as_of < v_now - interval '5 minutes' AND NOT billing.is_operator() THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB104',
            MESSAGE = format('p_as_of %s lies more than five minutes back', billing.to_rfc3339(v_as_of)),
            DETAIL = format('billing.now() is %s', billing.to_rfc3339(v_now)),
            HINT = 'Only a member of billing_operator may reach further back.';
    END IF;
    RETURN v_as_of;
END;
$function$;

COMMENT ON FUNCTION billing.require_as_of IS
'Business time of a call, cut to whole seconds, or SB104. Never after billing.now(); more than five minutes back for operators only.';
