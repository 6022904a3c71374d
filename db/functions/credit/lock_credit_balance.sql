CREATE OR REPLACE FUNCTION billing.lock_credit_balance(
    p_customer_id bigint,
    p_currency text
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      credit_balance, one row, FOR NO KEY UPDATE; last in the lock order
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
DECLARE
    v_balance bigint;
BEGIN
    SELECT b.balance
    INTO v_balance
    FROM billing.credit_balance AS b
    WHERE b.customer_id = p_customer_id AND b.currency = p_currency
    FOR NO KEY UPDATE;
    RETURN coalesce(v_balance, 0);
END;
$function$;

COMMENT ON FUNCTION billing.lock_credit_balance IS
'Locks the credit of a customer in one currency and returns it in minor units; 0 where there is none.';
