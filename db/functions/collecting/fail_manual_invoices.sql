CREATE OR REPLACE FUNCTION billing.fail_manual_invoices(
    p_invoices billing.invoice_key[],
    p_as_of timestamptz
)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      payment_attempt, by the update -> customer (its event counter); invoices are locked by the caller
-- Writes:     invoice, payment_attempt, customer, outbox_event
-- Raises:     nothing
-- Idempotent: yes
-- A loop: such invoices are written by hand. No subscription moves.
DECLARE
    v_invoice billing.invoice;
    v_failed integer := 0;
BEGIN
    FOR v_invoice IN
        UPDATE billing.invoice AS i
        SET status = 'FAILED', failed_at = p_as_of, lane = 'BACKLOG', next_attempt_at = NULL, held_until = NULL,
            dunning_ends_at = NULL
        FROM unnest(p_invoices) AS k
        WHERE i.customer_id = k.customer_id
          AND i.invoice_id = k.invoice_id
          AND i.status = 'OPEN'
          AND i.kind = 'MANUAL'
          AND i.dunning_ends_at <= p_as_of
          AND NOT billing.is_under_way(i)
        RETURNING i.*
    LOOP
        PERFORM billing.release_attempts(
            ARRAY[ROW(v_invoice.customer_id, v_invoice.invoice_id)::billing.invoice_key], p_as_of
        );
        PERFORM billing.record_customer_event(
            v_invoice.customer_id, 'InvoiceFailed', billing.invoice_payload(v_invoice), p_as_of
        );
        v_failed := v_failed + 1;
    END LOOP;
    RETURN v_failed;
END;
$function$;

COMMENT ON FUNCTION billing.fail_manual_invoices IS
'Gives up those of these MANUAL invoices whose dunning is over; the debt stands. Returns how many.';
