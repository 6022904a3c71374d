CREATE OR REPLACE FUNCTION billing_ops.unpark(
    p_subscription_id bigint,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.subscription
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      subscription, one row
-- Writes:     subscription, subscription_event
-- Raises:     SB104 p_as_of, SB201 subscription
-- Idempotent: yes: one that is not parked is returned as it is
-- It is due again where it would be without the parking; the next run catches up.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_subscription billing.subscription := billing.require_subscription(p_subscription_id);
BEGIN
    IF v_subscription.parked_at IS NOT NULL THEN
        UPDATE billing.subscription AS s
        SET parked_at = NULL,
            park_reason = NULL,
            next_renewal_at = CASE
                WHEN s.status IN ('TRIALING', 'ACTIVE') OR s.cancel_at_period_end OR d.past_due_renewal = 'CONTINUE'
                THEN s.current_period_end
            END,
            catch_up_run_id = NULL,
            catch_up_periods = 0,
            version = s.version + 1,
            event_seq = s.event_seq + 1
        FROM billing.dunning_policy AS d
        WHERE d.dunning_policy_id = s.dunning_policy_id
          AND s.customer_id = v_subscription.customer_id
          AND s.subscription_id = v_subscription.subscription_id;
        PERFORM billing.record_happening(v_subscription, 'RenewalUnparked', NULL, false, v_as_of);
    END IF;
    RETURN QUERY
    SELECT s.*
    FROM billing_api.subscription AS s
    WHERE s.customer_id = v_subscription.customer_id AND s.subscription_id = v_subscription.subscription_id;
END;
$function$;

COMMENT ON FUNCTION billing_ops.unpark IS
'Lets a renewal be tried again that failed on its data, once the cause is gone. Nothing is skipped: it catches up.';
