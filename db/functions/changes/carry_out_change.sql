CREATE OR REPLACE FUNCTION billing.carry_out_change(
    p_subscription billing.subscription,
    p_change billing.plan_change,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      credit_balance; the caller holds the subscription
-- Writes:     subscription, subscription_change, subscription_period, pending_line, invoice, invoice_line,
--             credit_entry, credit_balance, subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
-- A change of interval at the very end of a period leaves nothing to prorate: it is part of the renewal that is due.
DECLARE
    v_change billing.plan_change := p_change;
    v_invoice billing.invoice;
BEGIN
    IF v_change.timing = 'AT_PERIOD_END' OR (v_change.opens_period AND v_change.seconds_left = 0) THEN
        PERFORM billing.schedule_change(p_subscription, v_change, p_as_of);
        IF v_change.timing = 'IMMEDIATE' THEN
            PERFORM billing.renew_claimed(
                ARRAY[ROW(v_change.customer_id, v_change.subscription_id)::billing.subscription_key], p_as_of, NULL
            );
        END IF;
        RETURN;
    END IF;

    v_change.change_id := billing.store_change(v_change, p_as_of);
    IF p_subscription.current_period_kind = 'BILLED' AND v_change.timing = 'IMMEDIATE' THEN
        v_invoice := billing.issue_change_invoice(p_subscription, v_change, p_as_of);
    ELSIF p_subscription.current_period_kind = 'BILLED' THEN
        PERFORM billing.store_pending_lines(v_change, p_as_of);
    END IF;

    PERFORM billing.record_change_invoice(v_invoice, p_as_of);
    IF v_invoice.status IS DISTINCT FROM 'OPEN' OR v_change.payment_behavior = 'GRANT_FIRST' THEN
        PERFORM billing.apply_change(v_change.customer_id, v_change.change_id, p_as_of);
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.carry_out_change IS
'Schedules a change, or bills it; and lets it take effect where nothing has to be paid first.';
