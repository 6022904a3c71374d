CREATE OR REPLACE FUNCTION billing.lock_invoice(
    p_customer_id bigint,
    p_invoice_id bigint
)
RETURNS billing.invoice
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      subscription -> invoice, one row each, FOR NO KEY UPDATE
-- Writes:     nothing
-- Raises:     nothing of its own
-- Idempotent: yes
-- An invoice never changes its subscription, so it may be read before the lock. While the invoice is locked no attempt
-- is started and no result settled on it.
DECLARE
    v_invoice billing.invoice;
BEGIN
    PERFORM 1
    FROM billing.subscription AS s
    WHERE (s.customer_id, s.subscription_id) IN (
        SELECT i.customer_id, i.subscription_id
        FROM billing.invoice AS i
        WHERE i.customer_id = p_customer_id AND i.invoice_id = p_invoice_id
    )
    FOR NO KEY UPDATE;

    SELECT i.*
    INTO STRICT v_invoice
    FROM billing.invoice AS i
    WHERE i.customer_id = p_customer_id AND i.invoice_id = p_invoice_id
    FOR NO KEY UPDATE;
    RETURN v_invoice;
END;
$function$;

COMMENT ON FUNCTION billing.lock_invoice IS
'Locks an invoice behind its subscription and returns it. For every function that changes one invoice by hand.';
