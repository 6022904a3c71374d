CREATE OR REPLACE FUNCTION billing.answer_invoice(
    p_operation text,
    p_customer_id bigint,
    p_invoice_id bigint,
    p_key text
)
RETURNS SETOF billing_api.invoice
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     idempotency_key
-- Raises:     SB901 the key was not claimed
-- Idempotent: yes
DECLARE
    v_answer billing_api.invoice;
BEGIN
    SELECT i.*
    INTO STRICT v_answer
    FROM billing_api.invoice AS i
    WHERE i.customer_id = p_customer_id AND i.invoice_id = p_invoice_id;
    PERFORM billing.store_response(p_customer_id, p_operation, p_key, to_jsonb(v_answer));
    RETURN NEXT v_answer;
END;
$function$;

COMMENT ON FUNCTION billing.answer_invoice IS
'Reads an invoice as it is now, stores it as the answer to the idempotency key, and returns it.';
