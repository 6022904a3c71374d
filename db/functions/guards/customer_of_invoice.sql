CREATE OR REPLACE FUNCTION billing.customer_of_invoice(
    p_invoice_id bigint
)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing, so that the idempotency key can be claimed before the invoice is locked
-- Writes:     nothing
-- Raises:     SB204 no such invoice, or it belongs to another customer than the caller's scope
-- Idempotent: yes
DECLARE
    v_customer_id bigint;
BEGIN
    SELECT i.customer_id
    INTO v_customer_id
    FROM billing.invoice AS i
    WHERE i.invoice_id = p_invoice_id
      AND billing.in_customer_scope(i.customer_id);

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB204',
            MESSAGE = format('invoice %s does not exist', coalesce(p_invoice_id::text, 'NULL'));
    END IF;
    RETURN v_customer_id;
END;
$function$;

COMMENT ON FUNCTION billing.customer_of_invoice IS
'Returns the customer of an invoice without locking it. For every function that takes an invoice id.';
