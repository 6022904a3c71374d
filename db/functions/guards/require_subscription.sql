CREATE OR REPLACE FUNCTION billing.require_subscription(
    p_subscription_id bigint
)
RETURNS billing.subscription
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      subscription, one row, FOR NO KEY UPDATE
-- Writes:     nothing
-- Raises:     SB201 no such subscription, or it belongs to another customer than the caller's scope
-- Idempotent: yes
DECLARE
    v_subscription billing.subscription;
BEGIN
    SELECT s.*
    INTO v_subscription
    FROM billing.subscription AS s
    WHERE s.subscription_id = p_subscription_id
      AND billing.in_customer_scope(s.customer_id)
    FOR NO KEY UPDATE;

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB201',
            MESSAGE = format('subscription %s does not exist', coalesce(p_subscription_id::text, 'NULL'));
    END IF;

    RETURN v_subscription;
END;
$function$;

COMMENT ON FUNCTION billing.require_subscription IS
'Locks one subscription and returns it, or raises SB201.';
