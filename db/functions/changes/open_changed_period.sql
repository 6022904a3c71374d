CREATE OR REPLACE FUNCTION billing.open_changed_period(
    p_subscription billing.subscription,
    p_change billing.subscription_change,
    p_anchoring billing.anchoring
)
RETURNS billing.subscription_period
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     subscription_period
-- Raises:     nothing of its own
-- Idempotent: no
-- The period that runs ends at the change; at its own start it is replaced. The new one is a full one.
DECLARE
    v_period billing.subscription_period;
BEGIN
    SELECT
        p_change.effective_at,
        billing.period_boundary(
            p_anchoring.anchor_at, p_subscription.time_zone, pr.period_length, p_anchoring.period_no
        ),
        i.invoice_id
    INTO STRICT v_period.period_start, v_period.period_end, v_period.invoice_id
    FROM billing.price AS pr
    CROSS JOIN billing.invoice AS i
    WHERE pr.price_id = p_change.to_price_id
      AND i.customer_id = p_change.customer_id
      AND i.change_id = p_change.change_id;

    PERFORM billing.cut_periods(p_subscription.customer_id, p_subscription.subscription_id, v_period.period_start);
    PERFORM billing.append_period(
        p_subscription.customer_id, p_subscription.subscription_id, v_period.period_start, v_period.period_end, 'BILLED',
        v_period.invoice_id, p_subscription.event_seq + 1
    );
    RETURN v_period;
END;
$function$;

COMMENT ON FUNCTION billing.open_changed_period IS
'Ends the period that runs and opens a full one on the new interval; returns where it starts, where it ends and its invoice.';
