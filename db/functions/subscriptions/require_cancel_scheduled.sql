CREATE OR REPLACE FUNCTION billing.require_cancel_scheduled(
    p_subscription billing.subscription,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     nothing
-- Raises:     SB302 its boundary has passed, SB315 no cancellation is scheduled
-- Idempotent: yes
-- It ends at its boundary whenever that is processed, so after it nothing can be undone.
BEGIN
    IF NOT p_subscription.cancel_at_period_end THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB315',
            MESSAGE = format('subscription %s is not to be cancelled', p_subscription.subscription_id);
    END IF;
    IF p_subscription.current_period_end < p_as_of THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB302',
            MESSAGE = format('subscription %s has ended', p_subscription.subscription_id),
            DETAIL = format('ended at %s: period_end', billing.to_rfc3339(p_subscription.current_period_end));
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_cancel_scheduled IS
'Raises SB315 where no cancellation is scheduled, SB302 where it has taken effect already.';
