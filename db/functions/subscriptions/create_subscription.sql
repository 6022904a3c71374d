CREATE OR REPLACE FUNCTION billing_api.create_subscription(
    p_customer_id bigint,
    p_plan_code text,
    p_idempotency_key text,
    p_resource_ref text DEFAULT NULL,
    p_quantity integer DEFAULT 1,
    p_trial_days integer DEFAULT NULL,
    p_payment_behavior text DEFAULT 'PAY_FIRST',
    p_anchor_day integer DEFAULT NULL,
    p_auto_renew boolean DEFAULT true,
    p_term_periods integer DEFAULT NULL,
    p_dunning_policy text DEFAULT 'standard',
    p_payment_method_id bigint DEFAULT NULL,
    p_currency text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.subscription
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> subscription (live one of the resource) -> invoice -> credit_balance
-- Writes:     idempotency_key, resource, subscription, subscription_period, trial_taken, invoice, invoice_line,
--             credit_entry, credit_balance, subscription_event, outbox_event
-- Raises:     SB101, SB102 currency or no price in it, SB104 p_as_of, SB105, SB106 total, SB202 customer, SB203 plan,
--             SB205 payment method, SB207 dunning policy, SB301 already subscribed, SB305 key used with other
--             arguments, SB308 trial taken, SB310 resource suspended, SB313 grant first, SB314 customer not active,
--             SB401 try again
-- Idempotent: yes, by p_idempotency_key, which is required
DECLARE
    v_customer billing.customer := billing.require_customer(p_customer_id);
    v_arguments jsonb;
    v_replay jsonb;
    v_as_of timestamptz;
    v_terms billing.sign_up;
    v_placement billing.placement;
BEGIN
    PERFORM billing.require_text(p_idempotency_key, 'p_idempotency_key', 255);
    v_arguments := jsonb_build_object(
        'planCode', p_plan_code, 'resourceRef', coalesce(p_resource_ref, 'default'), 'quantity', p_quantity,
        'trialDays', p_trial_days, 'paymentBehavior', p_payment_behavior, 'anchorDay', p_anchor_day,
        'autoRenew', p_auto_renew, 'termPeriods', p_term_periods, 'dunningPolicy', p_dunning_policy,
        'paymentMethodId', p_payment_method_id, 'currency', p_currency
    );
    PERFORM billing.require_sign_up_arguments(v_arguments);
    v_replay := billing.claim_idempotency_key(
        p_customer_id, 'create_subscription', p_idempotency_key, v_arguments, false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.subscription, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    PERFORM billing.require_customer_status(v_customer, '{ACTIVE}');
    v_terms := billing.resolve_sign_up(
        v_customer, billing.require_resource(p_customer_id, v_arguments ->> 'resourceRef', v_as_of), v_arguments, v_as_of
    );
    v_placement := billing.place_subscription(v_terms);
    PERFORM billing.require_unsuspended(p_customer_id, v_terms.resource_id);
    IF v_placement.is_new THEN
        PERFORM billing.begin_subscription(v_terms, v_placement.subscription_id);
    END IF;

    RETURN QUERY SELECT r.* FROM billing.answer_subscription(
        'create_subscription', p_customer_id, v_placement.subscription_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.create_subscription IS
'Signs a customer up for a plan: with a trial, or INCOMPLETE until the first payment settles, or granted first. The same checkout again gives the same subscription.';
