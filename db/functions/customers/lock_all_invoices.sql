CREATE OR REPLACE FUNCTION billing.lock_all_invoices(
    p_customer_id bigint
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      invoice, all of the customer, in id order
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- While they are locked, no attempt is started on one, and nothing is settled: what comes late waits here, before it
-- takes what the caller is to lock next.
BEGIN
    PERFORM 1
    FROM billing.invoice AS i
    WHERE i.customer_id = p_customer_id
    ORDER BY i.invoice_id
    FOR NO KEY UPDATE;
END;
$function$;

COMMENT ON FUNCTION billing.lock_all_invoices IS
'Locks the invoices of a customer, paid ones too, so that nobody begins to pay one or hears of a payment meanwhile.';
