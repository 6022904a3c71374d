CREATE OR REPLACE FUNCTION billing.lock_credit(
    p_subscriptions billing.subscription_key[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      credit_balance of these customers, FOR NO KEY UPDATE, in (customer_id, currency) order
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
BEGIN
    PERFORM 1
    FROM billing.credit_balance AS b
    WHERE b.customer_id = ANY (ARRAY(SELECT DISTINCT k.customer_id FROM unnest(p_subscriptions) AS k))
    ORDER BY b.customer_id, b.currency
    FOR NO KEY UPDATE;
END;
$function$;

COMMENT ON FUNCTION billing.lock_credit IS
'Locks the credit balances of the customers of these subscriptions, before the statement that reads them.';
