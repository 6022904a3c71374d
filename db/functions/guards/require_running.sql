CREATE OR REPLACE FUNCTION billing.require_running(
    p_subscription billing.subscription
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     nothing
-- Raises:     SB302 CANCELED or EXPIRED
-- Idempotent: yes
BEGIN
    IF p_subscription.ended_at IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB302',
            MESSAGE = format(
                'subscription %s has ended (%s)', p_subscription.subscription_id, p_subscription.status
            ),
            DETAIL = format('ended at %s: %s', billing.to_rfc3339(p_subscription.ended_at), p_subscription.end_reason);
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_running IS 'Raises SB302 where the subscription is CANCELED or EXPIRED, which nothing can change.';
