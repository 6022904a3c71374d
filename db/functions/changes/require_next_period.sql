CREATE OR REPLACE FUNCTION billing.require_next_period(
    p_subscription billing.subscription
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     nothing
-- Raises:     SB303 it ends at its boundary, or has none
-- Idempotent: yes
BEGIN
    IF p_subscription.status NOT IN ('TRIALING', 'ACTIVE', 'PAST_DUE') OR p_subscription.cancel_at_period_end
        OR p_subscription.current_period_end >= p_subscription.term_end_at
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB303',
            MESSAGE = format('subscription %s has no next period to change', p_subscription.subscription_id),
            DETAIL = p_subscription.status;
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_next_period IS
'Raises SB303 where no period will follow the current one, by status, cancellation or fixed term.';
