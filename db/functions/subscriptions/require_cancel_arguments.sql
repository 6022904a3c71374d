CREATE OR REPLACE FUNCTION billing.require_cancel_arguments(
    p_at_period_end boolean,
    p_unused_time text
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL, unknown or contradictory
-- Idempotent: yes
BEGIN
    PERFORM billing.require_flag(p_at_period_end, 'p_at_period_end');
    PERFORM billing.require_choice(p_unused_time, 'p_unused_time', '{NONE,CREDIT,REFUND}');
    IF p_at_period_end AND p_unused_time <> 'NONE' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'at the end of the period no time is left unused',
            HINT = 'Send p_unused_time NONE, or cancel now.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_cancel_arguments IS 'Checks how a subscription is to be cancelled, or raises SB101.';
