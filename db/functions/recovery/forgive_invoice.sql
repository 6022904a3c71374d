CREATE OR REPLACE FUNCTION billing.forgive_invoice(
    p_invoice billing.invoice,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      payment_attempt -> credit_balance -> resource, customer; the caller holds subscription and invoice
-- Writes:     invoice, payment_attempt, credit_entry, credit_balance, subscription, subscription_period, resource, customer,
--             subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
DECLARE
    v_invoice billing.invoice;
    v_moves billing.status_move[];
BEGIN
    PERFORM billing.release_attempts(
        ARRAY[ROW(p_invoice.customer_id, p_invoice.invoice_id)::billing.invoice_key], p_as_of
    );
    UPDATE billing.invoice AS i
    SET status = 'VOID', voided_at = p_as_of, forgiven_by = billing.actor(), paid_at = NULL, credit_applied = 0,
        next_attempt_at = NULL, held_until = NULL, dunning_ends_at = NULL
    WHERE i.customer_id = p_invoice.customer_id AND i.invoice_id = p_invoice.invoice_id
    RETURNING i.* INTO STRICT v_invoice;

    IF p_invoice.subscription_id IS NOT NULL THEN
        v_moves := billing.move_subscriptions(
            ARRAY[billing.engine_judgement(v_invoice, NULL, 'FORGIVEN', NULL, NULL)], p_as_of
        );
    END IF;
    IF p_invoice.credit_applied > 0 THEN
        PERFORM billing.add_credit(
            p_invoice.customer_id, p_invoice.currency, 'RETURNED', p_invoice.credit_applied, p_invoice.invoice_id, NULL,
            'invoice voided', p_as_of
        );
    END IF;

    IF p_invoice.subscription_id IS NULL THEN
        PERFORM billing.record_customer_event(
            p_invoice.customer_id, 'InvoiceVoided', billing.invoice_payload(v_invoice), p_as_of
        );
        RETURN;
    END IF;
    PERFORM billing.record_forgiveness(v_invoice, v_moves, p_as_of);
    PERFORM billing.lift_unowed_suspensions(
        ARRAY[ROW(p_invoice.customer_id, p_invoice.subscription_id)::billing.subscription_key], p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.forgive_invoice IS
'Voids an invoice for good, gives back what credit it drew, and lets the subscription recover where nothing else is owed.';
