CREATE OR REPLACE FUNCTION billing.lock_open_invoices(
    p_customer_id bigint,
    p_subscription_id bigint
)
RETURNS bigint[]
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      invoice, the open ones of the customer, or of one subscription, in id order
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- While they are locked, no attempt is started on them: start_attempts skips them.
    SELECT coalesce(array_agg(o.invoice_id ORDER BY o.invoice_id), '{}')
    FROM (
        SELECT i.invoice_id
        FROM billing.invoice AS i
        WHERE i.customer_id = p_customer_id
          AND i.status = 'OPEN'
          AND (p_subscription_id IS NULL OR i.subscription_id = p_subscription_id)
        ORDER BY i.invoice_id
        FOR NO KEY UPDATE
    ) AS o;
$function$;

COMMENT ON FUNCTION billing.lock_open_invoices IS
'Locks the open invoices of a customer, of one subscription where p_subscription_id is not NULL, and returns their ids.';
