CREATE OR REPLACE FUNCTION billing.resolve_sign_up(
    p_customer billing.customer,
    p_resource billing.resource,
    p_arguments jsonb,
    p_as_of timestamptz
)
RETURNS billing.sign_up
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 calendar billing of days or weeks, SB102 currency, SB106 total, SB203 plan, SB205 payment method,
--             SB207 dunning policy, SB308 trial taken, SB313 grant first not permitted
-- Idempotent: yes
-- Decides all terms of a sign-up; the steps after it only write.
DECLARE
    v_plan CONSTANT billing.plan := billing.require_plan(p_arguments ->> 'planCode');
    v_policy CONSTANT billing.dunning_policy := billing.require_dunning_policy(p_arguments ->> 'dunningPolicy');
    v_price billing.price;
    v_trial_days integer;
    v_terms billing.sign_up;
BEGIN
    v_terms.currency := billing.require_currency(coalesce(p_arguments ->> 'currency', p_customer.currency));
    v_price := billing.price_for_sign_up(v_plan, v_terms.currency, p_as_of);
    v_terms.customer_id := p_customer.customer_id;
    v_terms.resource_id := p_resource.resource_id;
    v_terms.plan_id := v_plan.plan_id;
    v_terms.plan_code := v_plan.code;
    v_terms.plan_name := v_plan.name;
    v_terms.price_id := v_price.price_id;
    v_terms.unit_amount := v_price.amount;
    v_terms.period_length := v_price.period_length;
    v_terms.quantity := (p_arguments ->> 'quantity')::integer;
    v_terms.time_zone := p_customer.time_zone;
    v_terms.anchor_day := (p_arguments ->> 'anchorDay')::smallint;
    v_terms.auto_renew := (p_arguments ->> 'autoRenew')::boolean;
    v_terms.term_periods :=
        CASE WHEN NOT v_terms.auto_renew THEN coalesce((p_arguments ->> 'termPeriods')::integer, 1) END;
    v_terms.dunning_policy_id := v_policy.dunning_policy_id;
    v_terms.payment_method_id := (p_arguments ->> 'paymentMethodId')::bigint;
    v_terms.as_of := p_as_of;
    PERFORM billing.require_permitted_terms(v_terms, v_plan, v_price, p_arguments ->> 'paymentBehavior');

    v_terms.trial_scope := billing.trial_scope(v_plan.trial_once_per, v_plan.plan_id, p_resource.resource_id);
    v_trial_days := billing.decide_trial(
        p_customer.customer_id, v_terms.trial_scope, v_price.trial_days, (p_arguments ->> 'trialDays')::integer
    );
    IF v_trial_days > 0 THEN
        v_terms.trial_end := billing.local_days_later(p_as_of, v_trial_days, v_terms.time_zone);
    END IF;
    v_terms.status := CASE
        WHEN v_trial_days > 0 THEN 'TRIALING'
        WHEN p_arguments ->> 'paymentBehavior' = 'GRANT_FIRST' THEN 'ACTIVE'
        ELSE 'INCOMPLETE'
    END;
    v_terms.first := billing.first_period(
        v_terms.time_zone, v_terms.anchor_day, v_terms.period_length, coalesce(v_terms.trial_end, p_as_of)
    );
    v_terms.term_end_at := billing.term_end(
        v_terms.first, v_terms.time_zone, v_terms.period_length, v_terms.term_periods
    );
    RETURN v_terms;
END;
$function$;

COMMENT ON FUNCTION billing.resolve_sign_up IS
'Decides the terms of a sign-up: price, trial, first period, term, and what may be granted before it is paid.';
