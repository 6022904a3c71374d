CREATE OR REPLACE FUNCTION billing.lock_price_migrants(
    p_plan billing.plan,
    p_effective_from timestamptz
)
RETURNS billing.price_migrant[]
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      subscription, those that migrate, FOR NO KEY UPDATE, in key order
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- Read again after the lock: who has changed meanwhile may not be among them any more.
DECLARE
    v_locked billing.subscription_key[];
BEGIN
    SELECT coalesce(array_agg(ROW(l.customer_id, l.subscription_id)::billing.subscription_key), '{}')
    INTO v_locked
    FROM (
        SELECT s.customer_id, s.subscription_id
        FROM billing.price_migrants(p_plan, p_effective_from) AS g
        INNER JOIN billing.subscription AS s
            ON s.customer_id = g.customer_id AND s.subscription_id = g.subscription_id
        ORDER BY s.customer_id, s.subscription_id
        FOR NO KEY UPDATE OF s
    ) AS l;

    RETURN ARRAY(
        SELECT g
        FROM billing.price_migrants(p_plan, p_effective_from) AS g
        INNER JOIN unnest(v_locked) AS l
            ON l.customer_id = g.customer_id AND l.subscription_id = g.subscription_id
        ORDER BY g.customer_id, g.subscription_id
    );
END;
$function$;

COMMENT ON FUNCTION billing.lock_price_migrants IS
'Locks the subscriptions of a plan that are to get the price in force at an instant, and returns them with both prices in minor units.';
