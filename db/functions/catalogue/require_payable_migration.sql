CREATE OR REPLACE FUNCTION billing.require_payable_migration(
    p_migrants billing.price_migrant[]
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; where they migrate, the caller holds the subscriptions
-- Writes:     nothing
-- Raises:     SB106 a period of one of them would cost more than 10^15; its subscription in DETAIL
-- Idempotent: yes
-- A quantity counts that waits for the boundary or for its payment as well as the one in force.
DECLARE
    v_beyond record;
BEGIN
    SELECT g.subscription_id, g.new_amount, q.quantity
    INTO v_beyond
    FROM unnest(p_migrants) AS g
    INNER JOIN billing.subscription AS s
        ON s.customer_id = g.customer_id AND s.subscription_id = g.subscription_id
    LEFT JOIN billing.subscription_change AS c
        ON c.customer_id = s.customer_id AND c.subscription_id = s.subscription_id AND c.status = 'PENDING'
    CROSS JOIN LATERAL (SELECT greatest(s.quantity, s.pending_quantity, c.to_quantity) AS quantity) AS q
    WHERE g.new_amount::numeric * q.quantity > 1000000000000000
    ORDER BY g.subscription_id
    LIMIT 1;
    IF found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB106',
            MESSAGE = format('%s x %s is beyond 10^15 minor units', v_beyond.quantity, v_beyond.new_amount),
            DETAIL = v_beyond.subscription_id::text,
            HINT = 'DETAIL names the subscription. Change its plan or quantity first, or choose another price.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_payable_migration IS
'Refuses a migration after which a period of some subscription would cost more than an amount may be, with SB106.';
