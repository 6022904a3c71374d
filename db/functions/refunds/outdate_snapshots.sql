CREATE OR REPLACE FUNCTION billing.outdate_snapshots(
    p_invoice billing.invoice
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; the caller holds the subscription, or the invoice where there is none
    -- Writes:     subscription (version), or invoice (nothing of it changes) where there is none
    -- Raises:     nothing
    -- Idempotent: no
    -- A lock alone is no conflict once it is given up: a REPEATABLE READ transaction that began before would lock the same
    -- row, not see the new one, and give the same money away again. A row that was updated stops it with 40001.
    UPDATE billing.subscription AS s
    SET version = s.version + 1
    WHERE s.customer_id = p_invoice.customer_id AND s.subscription_id = p_invoice.subscription_id;

    UPDATE billing.invoice AS i
    SET amount_refunded = i.amount_refunded
    WHERE i.customer_id = p_invoice.customer_id AND i.invoice_id = p_invoice.invoice_id
      AND p_invoice.subscription_id IS NULL;
$function$;

COMMENT ON FUNCTION billing.outdate_snapshots IS
'Updates the row that everybody locks first who decides about the money of an invoice, so that nobody does from an older snapshot.';
