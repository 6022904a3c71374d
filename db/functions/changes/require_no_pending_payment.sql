CREATE OR REPLACE FUNCTION billing.require_no_pending_payment(
    p_subscription billing.subscription
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     nothing
-- Raises:     SB321 a change waits for its payment; its invoice in DETAIL
-- Idempotent: yes
DECLARE
    v_invoice_id bigint;
BEGIN
    SELECT i.invoice_id
    INTO v_invoice_id
    FROM billing.subscription_change AS c
    INNER JOIN billing.invoice AS i ON i.customer_id = c.customer_id AND i.change_id = c.change_id
    WHERE c.customer_id = p_subscription.customer_id
      AND c.subscription_id = p_subscription.subscription_id
      AND c.status = 'PENDING';
    IF found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB321',
            MESSAGE = format('a change of subscription %s waits for its payment', p_subscription.subscription_id),
            DETAIL = v_invoice_id::text,
            HINT = 'Wait for the payment, or take the change back with undo_change.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_no_pending_payment IS 'Raises SB321 while a change of the subscription waits for its payment.';
