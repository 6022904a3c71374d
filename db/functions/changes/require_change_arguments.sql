CREATE OR REPLACE FUNCTION billing.require_change_arguments(
    p_plan_code text,
    p_quantity integer,
    p_timing text,
    p_payment_behavior text
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 NULL, out of range or unknown, SB105 a card number
-- Idempotent: yes
BEGIN
    PERFORM billing.require_text(p_plan_code, 'p_plan_code', 63);
    IF p_quantity IS NOT NULL THEN
        PERFORM billing.require_integer(p_quantity, 'p_quantity', 1, 1000000);
    END IF;
    PERFORM billing.require_choice(p_timing, 'p_timing', '{IMMEDIATE,NEXT_INVOICE,AT_PERIOD_END}');
    PERFORM billing.require_choice(p_payment_behavior, 'p_payment_behavior', '{PAY_FIRST,GRANT_FIRST}');
END;
$function$;

COMMENT ON FUNCTION billing.require_change_arguments IS
'Checks the arguments of a change that need no row to be checked, or raises SB101.';
