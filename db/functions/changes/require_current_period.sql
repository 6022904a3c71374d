CREATE OR REPLACE FUNCTION billing.require_current_period(
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
-- Raises:     SB303 the period is over, and the renewal of the next one is parked,
--             SB323 the current period was renewed early and begins more than five minutes later
-- Idempotent: yes
-- Five minutes are the leeway of p_as_of: a call from just before a boundary that has been renewed acts at the boundary.
BEGIN
    IF p_subscription.current_period_start > p_as_of + interval '5 minutes' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB323',
            MESSAGE = format(
                'subscription %s was renewed early: its period begins at %s', p_subscription.subscription_id,
                billing.to_rfc3339(p_subscription.current_period_start)
            ),
            HINT = 'Try again once it has begun.';
    END IF;
    IF p_subscription.parked_at IS NOT NULL AND p_subscription.current_period_end < p_as_of THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB303',
            MESSAGE = format('the renewal of subscription %s failed and is parked', p_subscription.subscription_id),
            DETAIL = p_subscription.park_reason,
            HINT = 'An operator brings it back with billing_ops.unpark.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_current_period IS
'Raises SB323 while the current period lies in the future after an early renewal, SB303 where it is over and its renewal is parked.';
