CREATE OR REPLACE FUNCTION billing.reopen_pending_lines(
    p_invoices billing.invoice_key[]
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; the callers hold the subscriptions
    -- Writes:     pending_line
    -- Raises:     nothing
    -- Idempotent: yes
    UPDATE billing.pending_line AS l
    SET billed_on_invoice_id = NULL
    FROM unnest(p_invoices) AS k
    WHERE l.customer_id = k.customer_id AND l.billed_on_invoice_id = k.invoice_id;
$function$;

COMMENT ON FUNCTION billing.reopen_pending_lines IS
'Lets the lines wait again that stood on invoices which have become void.';
