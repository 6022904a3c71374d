CREATE OR REPLACE FUNCTION billing.reopen_paused_period(
    p_subscription billing.subscription,
    p_at timestamptz,
    p_end timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     subscription_period
-- Raises:     nothing of its own
-- Idempotent: no
-- The rest names the same invoice. After a pause of no length the row that was cut goes on.
BEGIN
    PERFORM billing.cut_periods(p_subscription.customer_id, p_subscription.subscription_id, p_at);
    IF p_end = p_at THEN
        RETURN;
    END IF;

    UPDATE billing.subscription_period AS p
    SET period_end = p_end
    WHERE p.customer_id = p_subscription.customer_id
      AND p.subscription_id = p_subscription.subscription_id
      AND p.period_end = p_at
      AND p.kind = 'BILLED'
      AND p.invoice_id = p_subscription.paused_invoice_id;
    IF NOT found THEN
        PERFORM billing.append_period(
            p_subscription.customer_id, p_subscription.subscription_id, p_at, p_end, 'BILLED',
            p_subscription.paused_invoice_id, p_subscription.event_seq + 1
        );
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.reopen_paused_period IS
'Ends the pause of a timeline at an instant, and goes on with the time that was left, up to an end.';
