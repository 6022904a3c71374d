CREATE OR REPLACE FUNCTION billing.renew_overdue(
    p_subscription_id bigint,
    p_as_of timestamptz
)
RETURNS billing.subscription
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      subscription, one row
-- Writes:     as renew_claimed
-- Raises:     SB201 unknown subscription; what renew_claimed raises
-- Idempotent: yes
-- A loop over the periods of one subscription: each boundary is priced on what the one before left behind.
DECLARE
    v_subscription billing.subscription := billing.require_subscription(p_subscription_id);
BEGIN
    WHILE v_subscription.next_renewal_at < p_as_of LOOP
        PERFORM billing.renew_claimed(
            ARRAY[ROW(v_subscription.customer_id, v_subscription.subscription_id)::billing.subscription_key],
            p_as_of, NULL
        );
        v_subscription := billing.require_subscription(p_subscription_id);
    END LOOP;
    RETURN v_subscription;
END;
$function$;

COMMENT ON FUNCTION billing.renew_overdue IS
'Renews the boundaries of one subscription that lie strictly before p_as_of, before a caller changes it, and returns it locked.';
