CREATE OR REPLACE FUNCTION billing.require_renewable_early(
    p_subscription billing.subscription,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     nothing
-- Raises:     SB303 not ACTIVE, or to end or pause at the boundary; SB320, SB321, SB323
-- Idempotent: yes
BEGIN
    IF p_subscription.status <> 'ACTIVE' OR p_subscription.next_renewal_at IS NULL
        OR p_subscription.current_period_kind <> 'BILLED' OR p_subscription.cancel_at_period_end
        OR p_subscription.pause_at_period_end OR p_subscription.current_period_end >= p_subscription.term_end_at
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB303',
            MESSAGE = format('subscription %s has no next period to renew into', p_subscription.subscription_id),
            DETAIL = p_subscription.status;
    END IF;
    PERFORM billing.require_no_pending_payment(p_subscription);
    PERFORM billing.require_no_open_invoice(p_subscription);
    IF p_subscription.current_period_start > p_as_of THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB323',
            MESSAGE = format(
                'subscription %s is renewed ahead: its period begins at %s', p_subscription.subscription_id,
                billing.to_rfc3339(p_subscription.current_period_start)
            ),
            HINT = 'At most one period can be renewed ahead.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_renewable_early IS 'Refuses an early renewal where there is no next period, or one is renewed ahead already.';
