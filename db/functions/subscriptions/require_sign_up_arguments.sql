CREATE OR REPLACE FUNCTION billing.require_sign_up_arguments(
    p_arguments jsonb
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL, out of range or contradictory, SB105 a card number
-- Idempotent: yes
BEGIN
    PERFORM billing.require_text(p_arguments ->> 'planCode', 'p_plan_code', 63);
    PERFORM billing.require_text(p_arguments ->> 'resourceRef', 'p_resource_ref', 255);
    PERFORM billing.require_text(p_arguments ->> 'dunningPolicy', 'p_dunning_policy', 63);
    PERFORM billing.require_integer((p_arguments ->> 'quantity')::integer, 'p_quantity', 1, 1000000);
    PERFORM billing.require_choice(
        p_arguments ->> 'paymentBehavior', 'p_payment_behavior', '{PAY_FIRST,GRANT_FIRST}'
    );
    PERFORM billing.require_flag((p_arguments ->> 'autoRenew')::boolean, 'p_auto_renew');
    IF p_arguments ->> 'trialDays' IS NOT NULL THEN
        PERFORM billing.require_integer((p_arguments ->> 'trialDays')::integer, 'p_trial_days', 0, 730);
    END IF;
    IF p_arguments ->> 'anchorDay' IS NOT NULL THEN
        PERFORM billing.require_integer((p_arguments ->> 'anchorDay')::integer, 'p_anchor_day', 1, 31);
    END IF;
    IF p_arguments ->> 'termPeriods' IS NOT NULL THEN
        PERFORM billing.require_integer((p_arguments ->> 'termPeriods')::integer, 'p_term_periods', 1, 1200);
        IF (p_arguments ->> 'autoRenew')::boolean THEN
            RAISE EXCEPTION USING
                ERRCODE = 'SB101',
                MESSAGE = 'p_term_periods is for a subscription that does not renew by itself',
                HINT = 'Send p_auto_renew false with it.';
        END IF;
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_sign_up_arguments IS
'Checks the arguments of a sign-up that need no row to be checked, or raises SB101.';
