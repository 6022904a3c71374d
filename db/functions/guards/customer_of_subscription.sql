CREATE OR REPLACE FUNCTION billing.customer_of_subscription(
    p_subscription_id bigint
)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing, so that the idempotency key can be claimed before the subscription is locked
-- Writes:     nothing
-- Raises:     SB201 no such subscription, or it belongs to another customer than the caller's scope
-- Idempotent: yes
DECLARE
    v_customer_id bigint;
BEGIN
    SELECT s.customer_id
    INTO v_customer_id
    FROM billing.subscription AS s
    WHERE s.subscription_id = p_subscription_id
      AND billing.in_customer_scope(s.customer_id);

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB201',
            MESSAGE = format('subscription %s does not exist', coalesce(p_subscription_id::text, 'NULL'));
    END IF;

    RETURN v_customer_id;
END;
$function$;

COMMENT ON FUNCTION billing.customer_of_subscription IS 'The customer of a bare subscription id, or SB201.';
