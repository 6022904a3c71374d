CREATE OR REPLACE FUNCTION billing.require_begun_period(
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
-- Raises:     SB323 the current period was renewed early and begins more than five minutes later
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
END;
$function$;

COMMENT ON FUNCTION billing.require_begun_period IS 'Raises SB323 while the current period lies in the future after an early renewal.';
