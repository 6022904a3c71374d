CREATE OR REPLACE FUNCTION billing.park_subscription(
    p_subscription billing.subscription_key,
    p_sqlstate text,
    p_message text,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; claimed before
-- Writes:     subscription, subscription_event
-- Raises:     nothing
-- Idempotent: yes
DECLARE
    v_before billing.subscription;
BEGIN
    SELECT s.*
    INTO STRICT v_before
    FROM billing.subscription AS s
    WHERE s.customer_id = p_subscription.customer_id
      AND s.subscription_id = p_subscription.subscription_id;

    UPDATE billing.subscription AS s
    SET next_renewal_at = NULL,
        parked_at = p_as_of,
        park_reason = left(format('%s %s', p_sqlstate, p_message), 500),
        version = s.version + 1,
        event_seq = s.event_seq + 1
    WHERE s.customer_id = p_subscription.customer_id
      AND s.subscription_id = p_subscription.subscription_id;
    PERFORM billing.record_happening(
        v_before, 'RenewalParked',
        jsonb_build_object('sqlstate', p_sqlstate, 'message', left(p_message, 500)), false, p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.park_subscription IS
'Sets a renewal aside that failed on its data, so that it stops nobody else. Access and due date stay; billing_ops.unpark brings it back.';
