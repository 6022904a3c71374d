CREATE OR REPLACE FUNCTION billing.resolve_change(
    p_subscription billing.subscription,
    p_plan_code text,
    p_quantity integer,
    p_timing text,
    p_payment_behavior text,
    p_as_of timestamptz
)
RETURNS billing.plan_change
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     nothing
-- Raises:     SB101, SB102, SB106, SB203, SB303, SB313, SB320, SB321, SB323
-- Idempotent: yes
-- Decides a change; the steps after it only write. The same plan keeps the pinned price, whatever the catalogue has
-- published since. p_as_of is raised to the start of the current period.
DECLARE
    c_plan CONSTANT billing.plan := billing.require_plan(p_plan_code);
    v_from_price billing.price;
    v_from_plan billing.plan;
    v_to_price billing.price;
    v_change billing.plan_change;
BEGIN
    SELECT pr.* INTO STRICT v_from_price FROM billing.price AS pr WHERE pr.price_id = p_subscription.price_id;
    SELECT pl.* INTO STRICT v_from_plan FROM billing.plan AS pl WHERE pl.plan_id = v_from_price.plan_id;
    v_to_price := CASE WHEN c_plan.plan_id = v_from_plan.plan_id THEN v_from_price END;
    IF v_to_price.price_id IS NULL THEN
        v_to_price := billing.price_for_sign_up(c_plan, v_from_price.currency, p_as_of);
    END IF;

    v_change.customer_id := p_subscription.customer_id;
    v_change.subscription_id := p_subscription.subscription_id;
    v_change.timing := p_timing;
    v_change.payment_behavior := p_payment_behavior;
    v_change.from_price_id := v_from_price.price_id;
    v_change.from_plan_code := v_from_plan.code;
    v_change.from_unit_amount := v_from_price.amount;
    v_change.from_quantity := p_subscription.quantity;
    v_change.to_price_id := v_to_price.price_id;
    v_change.to_plan_code := c_plan.code;
    v_change.to_plan_name := c_plan.name;
    v_change.to_unit_amount := v_to_price.amount;
    v_change.to_quantity := coalesce(p_quantity, p_subscription.quantity);
    v_change.currency := v_to_price.currency;
    v_change.opens_period := NOT billing.is_same_length(v_to_price.period_length, v_from_price.period_length)
        AND p_timing <> 'AT_PERIOD_END' AND p_subscription.current_period_kind = 'BILLED';
    v_change.effective_at := greatest(p_as_of, p_subscription.current_period_start);
    v_change.period_end := p_subscription.current_period_end;
    PERFORM billing.require_permitted_change(p_subscription, v_change, c_plan, p_as_of);

    IF p_subscription.current_period_kind = 'BILLED' AND p_timing <> 'AT_PERIOD_END' THEN
        -- Of a change that was forgiven nothing was paid: time is worth what it was before.
        SELECT
            v.base_invoice_id, v.seconds_left, v.seconds_total,
            least(
                v.creditable + v.waiting,
                billing.prorated_amount(v.unit_amount, v.quantity, v.seconds_left, v.seconds_total)
            )
        INTO STRICT v_change.base_invoice_id, v_change.seconds_left, v_change.seconds_total, v_change.creditable
        FROM billing.value_of_period(p_subscription, v_change.effective_at) AS v;
        IF v_change.opens_period THEN
            v_change.period_end := (billing.first_period(
                p_subscription.time_zone, NULL, v_to_price.period_length, v_change.effective_at
            )).period_end;
        END IF;
    END IF;
    RETURN v_change;
END;
$function$;

COMMENT ON FUNCTION billing.resolve_change IS
'Decides the terms of a change: prices, what is left of the period, whether a new one begins, what may be credited at most.';
