CREATE OR REPLACE FUNCTION billing.require_permitted_change(
    p_subscription billing.subscription,
    p_change billing.plan_change,
    p_plan billing.plan,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     nothing
-- Raises:     SB106 total, SB303 status, SB313 grant first, SB320 invoice open, SB321 change pending, SB323 not begun
-- Idempotent: yes
DECLARE
    v_unit_amount bigint;
BEGIN
    PERFORM billing.require_no_pending_payment(p_subscription);
    -- A new price of the same plan that is on its way will be multiplied by the quantity as well.
    SELECT greatest(p_change.to_unit_amount, (
        SELECT pr.amount
        FROM billing.price AS pr
        WHERE pr.price_id = p_subscription.migration_price_id AND pr.plan_id = p_plan.plan_id
    ))
    INTO STRICT v_unit_amount;
    IF v_unit_amount::numeric * p_change.to_quantity > 1000000000000000 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB106',
            MESSAGE = format('%s x %s is beyond 10^15 minor units', p_change.to_quantity, v_unit_amount);
    END IF;
    IF p_change.payment_behavior = 'GRANT_FIRST' AND NOT p_plan.grant_first_allowed AND NOT billing.is_operator() THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB313',
            MESSAGE = format('plan %s is paid before it is granted', p_plan.code),
            HINT = 'GRANT_FIRST is for members of billing_operator, and for plans with grant_first_allowed.';
    END IF;

    IF p_change.opens_period AND p_change.timing = 'NEXT_INVOICE' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB303',
            MESSAGE = format('subscription %s would begin a period without an invoice', p_subscription.subscription_id),
            HINT = 'A change of interval begins a period at once: IMMEDIATE bills it now, AT_PERIOD_END waits.';
    END IF;
    IF p_change.timing = 'AT_PERIOD_END' THEN
        PERFORM billing.require_next_period(p_subscription);
        RETURN;
    END IF;

    IF p_subscription.status NOT IN ('TRIALING', 'ACTIVE') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB303',
            MESSAGE = format('subscription %s is %s', p_subscription.subscription_id, p_subscription.status),
            HINT = 'While it is past due, a change AT_PERIOD_END is possible.';
    END IF;
    IF p_subscription.pause_at_period_end AND p_change.payment_behavior = 'GRANT_FIRST' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB303',
            MESSAGE = format(
                'subscription %s is to pause, and what is granted first would be owed then', p_subscription.subscription_id
            ),
            HINT = 'Pay first, or take the pause back with resume_subscription.';
    END IF;
    PERFORM billing.require_no_open_invoice(p_subscription);
    PERFORM billing.require_current_period(p_subscription, p_as_of);
    IF p_change.opens_period AND p_change.effective_at = p_subscription.current_period_end THEN
        PERFORM billing.require_next_period(p_subscription);
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_permitted_change IS
'Refuses a change that the status, an open invoice, a pending change or the rights of the caller do not allow.';
