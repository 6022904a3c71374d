CREATE OR REPLACE FUNCTION billing.make_due_at_once(
    p_invoice billing.invoice,
    p_payment_method_id bigint,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      payment_attempt, by the update; the caller holds subscription and invoice
-- Writes:     invoice, payment_attempt, subscription, subscription_event
-- Raises:     SB205 payment method, SB306 a charge is in flight, SB332 a case is open, SB333 capped
-- Idempotent: yes
-- Asked twice before the attempt starts, it stays one attempt: the invoice has one next_attempt_at.
DECLARE
    v_subscription billing.subscription;
    v_method billing.payment_method;
BEGIN
    PERFORM billing.require_no_charge_in_flight(p_invoice);
    PERFORM billing.require_no_case(p_invoice);
    SELECT s.*
    INTO v_subscription
    FROM billing.subscription AS s
    WHERE s.customer_id = p_invoice.customer_id AND s.subscription_id = p_invoice.subscription_id;
    v_method := billing.method_for_retry(
        p_invoice, coalesce(p_payment_method_id, p_invoice.payment_method_id, v_subscription.payment_method_id),
        p_payment_method_id IS NOT NULL, p_as_of
    );

    -- What was never executed holds nobody to its method or its amount.
    PERFORM billing.release_attempts(
        ARRAY[ROW(p_invoice.customer_id, p_invoice.invoice_id)::billing.invoice_key], p_as_of
    );
    UPDATE billing.invoice AS i
    SET lane = 'INTERACTIVE',
        next_attempt_at = p_as_of,
        held_until = NULL,
        gateway_account_id = v_method.gateway_account_id,
        payment_method_id = coalesce(p_payment_method_id, i.payment_method_id)
    WHERE i.customer_id = p_invoice.customer_id AND i.invoice_id = p_invoice.invoice_id;

    IF v_subscription.subscription_id IS NOT NULL THEN
        UPDATE billing.subscription AS s
        SET version = s.version + 1, event_seq = s.event_seq + 1
        WHERE s.customer_id = v_subscription.customer_id AND s.subscription_id = v_subscription.subscription_id;
        PERFORM billing.record_happening(
            v_subscription, 'RetryRequested',
            jsonb_build_object('invoiceId', p_invoice.invoice_id, 'paymentMethodId', v_method.payment_method_id),
            false, p_as_of
        );
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.make_due_at_once IS
'Has one attempt made to collect an invoice, ahead of all others.';
