CREATE OR REPLACE FUNCTION billing.open_changed_period(
    p_subscription billing.subscription,
    p_change billing.subscription_change
)
RETURNS billing.first_period
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     subscription_period
-- Raises:     nothing of its own
-- Idempotent: no
-- The period that runs ends at the change; at its own start it is replaced. The new one is a full one, anchored there,
-- also where billing followed the calendar before.
DECLARE
    v_invoice_id bigint;
    v_first billing.first_period;
BEGIN
    SELECT f.*
    INTO STRICT v_first
    FROM billing.price AS pr
    CROSS JOIN LATERAL billing.first_period(
        p_subscription.time_zone, NULL, pr.period_length, p_change.effective_at
    ) AS f
    WHERE pr.price_id = p_change.to_price_id;

    SELECT i.invoice_id
    INTO STRICT v_invoice_id
    FROM billing.invoice AS i
    WHERE i.customer_id = p_change.customer_id AND i.change_id = p_change.change_id;

    PERFORM billing.cut_periods(p_subscription.customer_id, p_subscription.subscription_id, p_change.effective_at);
    PERFORM billing.append_period(
        p_subscription.customer_id, p_subscription.subscription_id, v_first.period_start, v_first.period_end, 'BILLED',
        v_invoice_id, p_subscription.event_seq + 1
    );
    RETURN v_first;
END;
$function$;

COMMENT ON FUNCTION billing.open_changed_period IS
'Ends the period that runs and opens a new one on the new interval, and returns it with its anchor.';
