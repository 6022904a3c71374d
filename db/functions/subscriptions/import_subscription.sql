CREATE OR REPLACE FUNCTION billing_api.import_subscription(
    p_customer_id bigint,
    p_plan_code text,
    p_current_period_start timestamptz,
    p_idempotency_key text,
    p_resource_ref text DEFAULT NULL,
    p_quantity integer DEFAULT 1,
    p_anchor_at timestamptz DEFAULT NULL,
    p_dunning_policy text DEFAULT 'standard',
    p_payment_method_id bigint DEFAULT NULL,
    p_auto_renew boolean DEFAULT true,
    p_term_periods integer DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.subscription
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key
-- Writes:     idempotency_key, resource, subscription, subscription_period, invoice, subscription_event, outbox_event
-- Raises:     SB101 malformed, not a boundary, or a period that has ended; SB102 no price in the currency of the customer,
--             SB104 p_as_of, SB202, SB203, SB205, SB207, SB301 already subscribed, SB305, SB314
-- Idempotent: yes, by p_idempotency_key, which is required
DECLARE
    v_customer billing.customer := billing.require_customer(p_customer_id);
    v_replay jsonb;
    v_subscription billing.subscription;
BEGIN
    PERFORM billing.require_text(p_idempotency_key, 'p_idempotency_key', 255);
    v_replay := billing.claim_idempotency_key(
        p_customer_id, 'import_subscription', p_idempotency_key,
        jsonb_build_object(
            'planCode', p_plan_code, 'currentPeriodStart', extract(epoch FROM p_current_period_start),
            'resourceRef', coalesce(p_resource_ref, 'default'), 'quantity', p_quantity,
            'anchorAt', extract(epoch FROM coalesce(p_anchor_at, p_current_period_start)),
            'dunningPolicy', p_dunning_policy, 'paymentMethodId', p_payment_method_id, 'autoRenew', p_auto_renew,
            'termPeriods', p_term_periods
        ),
        false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.subscription, v_replay) AS r;
        RETURN;
    END IF;

    v_subscription := billing.place_imported_subscription(
        v_customer, p_plan_code, p_current_period_start, coalesce(p_resource_ref, 'default'), p_quantity,
        coalesce(p_anchor_at, p_current_period_start), p_dunning_policy, p_payment_method_id, p_auto_renew,
        p_term_periods, billing.require_as_of(p_as_of)
    );
    RETURN QUERY
    SELECT a.* FROM billing.answer_subscription(
        'import_subscription', p_customer_id, v_subscription.subscription_id, p_idempotency_key
    ) AS a;
END;
$function$;

COMMENT ON FUNCTION billing_api.import_subscription IS
'Takes over a subscription whose current period was billed elsewhere: ACTIVE, and first renewed at the end of that period, which must not be past. The period is covered by an invoice over nothing, so nothing of it is ever credited.';
