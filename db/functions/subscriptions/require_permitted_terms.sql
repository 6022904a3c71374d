CREATE OR REPLACE FUNCTION billing.require_permitted_terms(
    p_terms billing.sign_up,
    p_plan billing.plan,
    p_price billing.price,
    p_payment_behavior text
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 calendar billing of days or weeks, SB106 total beyond 10^15, SB205 payment method,
--             SB313 grant first is for operators and for plans that allow it
-- Idempotent: yes
BEGIN
    IF p_terms.anchor_day IS NOT NULL AND p_price.interval_unit NOT IN ('MONTH', 'YEAR') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('p_anchor_day is for months and years, and plan %s is billed by %s', p_plan.code, p_price.interval_unit);
    END IF;
    IF p_terms.unit_amount::numeric * p_terms.quantity > 1000000000000000 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB106',
            MESSAGE = format('%s x %s is beyond 10^15 minor units', p_terms.quantity, p_terms.unit_amount);
    END IF;
    IF p_terms.payment_method_id IS NOT NULL THEN
        PERFORM billing.require_payment_method(p_terms.customer_id, p_terms.payment_method_id);
    END IF;
    IF p_payment_behavior = 'GRANT_FIRST' AND NOT p_plan.grant_first_allowed AND NOT billing.is_operator() THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB313',
            MESSAGE = format('plan %s is paid before it is granted', p_plan.code),
            HINT = 'GRANT_FIRST is for members of billing_operator, and for plans with grant_first_allowed.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_permitted_terms IS
'Refuses terms of a sign-up that contradict the price, the customer or the rights of the caller.';
