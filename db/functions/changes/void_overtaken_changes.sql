CREATE OR REPLACE FUNCTION billing.void_overtaken_changes(
    p_subscriptions billing.subscription_key[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      invoice; subscriptions and credit balances are locked by the caller
    -- Writes:     as void_change
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT billing.void_change(c.customer_id, c.change_id, p_as_of)
    FROM unnest(p_subscriptions) AS k
    INNER JOIN billing.subscription_change AS c
        ON c.customer_id = k.customer_id AND c.subscription_id = k.subscription_id
    WHERE c.status = 'PENDING'
    ORDER BY c.customer_id, c.change_id;
$function$;

COMMENT ON FUNCTION billing.void_overtaken_changes IS
'Takes back the changes of subscriptions at a boundary that were not paid before it.';
