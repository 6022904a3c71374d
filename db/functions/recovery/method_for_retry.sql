CREATE OR REPLACE FUNCTION billing.method_for_retry(
    p_invoice billing.invoice,
    p_payment_method_id bigint,
    p_is_chosen boolean,
    p_as_of timestamptz
)
RETURNS billing.payment_method
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB205 not a method of the customer, or there is none, SB333 the card network allows no further try now
-- Idempotent: yes
-- A method that was declined for good may be tried again by its owner, though never automatically.
DECLARE
    v_method billing.payment_method;
BEGIN
    IF p_is_chosen THEN
        v_method := billing.require_payment_method(p_invoice.customer_id, p_payment_method_id);
    ELSE
        SELECT m.* INTO v_method FROM billing.usable_method(p_invoice.customer_id, p_payment_method_id) AS m;
        IF NOT found THEN
            RAISE EXCEPTION USING
                ERRCODE = 'SB205',
                MESSAGE = format('customer %s has no payment method', p_invoice.customer_id),
                HINT = 'Add one with billing_api.add_payment_method: open invoices are then due by themselves.';
        END IF;
    END IF;
    IF billing.is_capped(p_invoice, v_method.payment_method_id, v_method.brand, p_as_of) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB333',
            MESSAGE = format(
                'payment method %s was declined as often as its card network allows', v_method.payment_method_id
            ),
            HINT = 'Pay with another method, or later.';
    END IF;
    RETURN v_method;
END;
$function$;

COMMENT ON FUNCTION billing.method_for_retry IS
'The payment method with which a customer tries an invoice again: the chosen one, else the one that it would use anyway.';
