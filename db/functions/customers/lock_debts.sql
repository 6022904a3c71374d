CREATE OR REPLACE FUNCTION billing.lock_debts(
    p_customer_id bigint
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      invoice, those of the customer that were given up unpaid, in id order
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- While they are locked, no attempt is started on them: start_attempts skips them.
BEGIN
    PERFORM 1
    FROM billing.invoice AS i
    WHERE i.customer_id = p_customer_id AND i.status = 'FAILED'
    ORDER BY i.invoice_id
    FOR NO KEY UPDATE;
END;
$function$;

COMMENT ON FUNCTION billing.lock_debts IS 'Locks the failed invoices of a customer, so that nobody begins to pay one.';
