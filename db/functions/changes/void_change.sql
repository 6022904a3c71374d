CREATE OR REPLACE FUNCTION billing.void_change(
    p_customer_id bigint,
    p_change_id bigint,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      invoice, one row -> payment_attempt -> credit_balance; the caller holds the subscription
-- Writes:     subscription_change, invoice, pending_line, payment_attempt, credit_entry, credit_balance,
--             subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
-- Everything is as before the call. A charge in flight is looked up, never sent again; late money becomes credit.
DECLARE
    v_subscription billing.subscription;
    v_invoice billing.invoice;
BEGIN
    SELECT i.*
    INTO STRICT v_invoice
    FROM billing.invoice AS i
    WHERE i.customer_id = p_customer_id AND i.change_id = p_change_id
    FOR NO KEY UPDATE;

    PERFORM billing.release_attempts(
        ARRAY[ROW(v_invoice.customer_id, v_invoice.invoice_id)::billing.invoice_key], p_as_of
    );
    IF v_invoice.credit_applied > 0 THEN
        PERFORM billing.add_credit(
            p_customer_id, v_invoice.currency, 'RETURNED', v_invoice.credit_applied, v_invoice.invoice_id, NULL,
            'invoice voided', p_as_of
        );
    END IF;
    UPDATE billing.invoice AS i
    SET status = 'VOID', voided_at = p_as_of, credit_applied = 0, next_attempt_at = NULL, held_until = NULL
    WHERE i.customer_id = p_customer_id AND i.invoice_id = v_invoice.invoice_id;
    PERFORM billing.reopen_pending_lines(
        ARRAY[ROW(v_invoice.customer_id, v_invoice.invoice_id)::billing.invoice_key]
    );
    UPDATE billing.subscription_change AS c
    SET status = 'VOID', ended_at = p_as_of
    WHERE c.customer_id = p_customer_id AND c.change_id = p_change_id;

    SELECT s.*
    INTO STRICT v_subscription
    FROM billing.subscription AS s
    WHERE s.customer_id = p_customer_id AND s.subscription_id = v_invoice.subscription_id;
    UPDATE billing.subscription AS s
    SET version = s.version + 1, event_seq = s.event_seq + 1
    WHERE s.customer_id = p_customer_id AND s.subscription_id = v_invoice.subscription_id;
    PERFORM billing.record_happenings(
        ARRAY[
            ROW(
                p_customer_id, v_invoice.subscription_id, v_subscription.event_seq + 1, 'InvoiceVoided', NULL, NULL,
                v_invoice.invoice_id, NULL, NULL, true
            )::billing.happening
        ],
        p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.void_change IS
'Takes back a change that waits for its payment: its invoice is void, credit goes back, plan and quantity stay.';
