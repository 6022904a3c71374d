CREATE OR REPLACE FUNCTION billing.require_pausable(
    p_subscription billing.subscription,
    p_at_period_end boolean,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     nothing
-- Raises:     SB303 not ACTIVE, or in a trial; SB320 an invoice is open, SB321 a change waits, SB323 not begun
-- Idempotent: yes
BEGIN
    IF p_subscription.status IN ('ACTIVE', 'TRIALING') AND p_subscription.current_period_kind = 'BILLED' THEN
        PERFORM billing.require_no_pending_payment(p_subscription);
        PERFORM billing.require_no_open_invoice(p_subscription);
    END IF;
    IF p_subscription.status <> 'ACTIVE' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB303',
            MESSAGE = format(
                'subscription %s is %s and cannot be paused', p_subscription.subscription_id, p_subscription.status
            );
    END IF;
    IF NOT p_at_period_end THEN
        PERFORM billing.require_current_period(p_subscription, p_as_of);
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_pausable IS 'Refuses a pause that status, debt, a pending change or an early renewal do not allow.';
