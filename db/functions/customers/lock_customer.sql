CREATE OR REPLACE FUNCTION billing.lock_customer(
    p_customer_id bigint
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      customer, one row, FOR NO KEY UPDATE; after invoices, never before a subscription
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- Renewals do not wait for this lock: foreign keys take a weaker one.
BEGIN
    PERFORM 1
    FROM billing.customer AS c
    WHERE c.customer_id = p_customer_id
    FOR NO KEY UPDATE;
END;
$function$;

COMMENT ON FUNCTION billing.lock_customer IS 'Lets changes to the payment methods of one customer happen one after the other.';
