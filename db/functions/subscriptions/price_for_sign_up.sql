CREATE OR REPLACE FUNCTION billing.price_for_sign_up(
    p_plan billing.plan,
    p_currency text,
    p_as_of timestamptz
)
RETURNS billing.price
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB102 the plan has no price in this currency yet
-- Idempotent: yes
DECLARE
    v_price billing.price;
BEGIN
    SELECT pr.*
    INTO v_price
    FROM billing.price AS pr
    WHERE pr.plan_id = p_plan.plan_id AND pr.currency = p_currency AND pr.effective_from <= p_as_of
    ORDER BY pr.effective_from DESC
    LIMIT 1;

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB102',
            MESSAGE = format('plan %s has no price in %s at %s', p_plan.code, p_currency, billing.to_rfc3339(p_as_of)),
            HINT = 'Choose a currency of billing_api.price, or add a price with billing_api.add_price.';
    END IF;

    RETURN v_price;
END;
$function$;

COMMENT ON FUNCTION billing.price_for_sign_up IS
'The price version that a subscription pins which begins at an instant: the latest effective one, or SB102.';
