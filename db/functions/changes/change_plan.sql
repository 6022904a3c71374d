CREATE OR REPLACE FUNCTION billing_api.change_plan(
    p_subscription_id bigint,
    p_plan_code text,
    p_quantity integer DEFAULT NULL,
    p_timing text DEFAULT 'IMMEDIATE',
    p_payment_behavior text DEFAULT 'PAY_FIRST',
    p_expected_version bigint DEFAULT NULL,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.subscription
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> subscription -> invoice -> credit_balance
-- Writes:     idempotency_key, subscription, subscription_change, subscription_period, pending_line, invoice,
--             invoice_line, credit_entry, credit_balance, subscription_event, outbox_event; where it is overdue as renew_overdue
-- Raises:     SB101 also for another interval at NEXT_INVOICE, SB102 no price in the currency of the subscription,
--             SB104 p_as_of, SB106 amount, SB201, SB203 plan, SB302 already ended, SB303 status, SB304 version, SB305,
--             SB313 grant first not permitted, SB320 an invoice is open, SB321 a change waits for its payment,
--             SB323 the period has not begun
-- Idempotent: yes, by p_idempotency_key
DECLARE
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_subscription billing.subscription;
BEGIN
    PERFORM billing.require_change_arguments(p_plan_code, p_quantity, p_timing, p_payment_behavior);
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'change_plan', p_idempotency_key,
        jsonb_build_object(
            'subscriptionId', p_subscription_id, 'planCode', p_plan_code, 'quantity', p_quantity,
            'timing', p_timing, 'paymentBehavior', p_payment_behavior
        ),
        false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.subscription, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    v_subscription := billing.require_subscription(p_subscription_id);
    PERFORM billing.require_expected_version(v_subscription, p_expected_version);
    PERFORM billing.require_running(v_subscription);
    v_subscription := billing.renew_overdue(p_subscription_id, v_as_of);
    PERFORM billing.require_running(v_subscription);
    PERFORM billing.carry_out_change(
        v_subscription,
        billing.resolve_change(v_subscription, p_plan_code, p_quantity, p_timing, p_payment_behavior, v_as_of),
        v_as_of
    );

    RETURN QUERY SELECT r.* FROM billing.answer_subscription(
        'change_plan', v_customer_id, p_subscription_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.change_plan IS
'Changes plan or quantity: IMMEDIATE (prorated and charged now), NEXT_INVOICE (prorated, collected with the next renewal) or AT_PERIOD_END (no proration). PAY_FIRST takes effect once its invoice is paid, GRANT_FIRST at once. In a trial it swaps the plan. p_quantity NULL keeps the quantity.';
