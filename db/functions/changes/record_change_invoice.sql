CREATE OR REPLACE FUNCTION billing.record_change_invoice(
    p_invoice billing.invoice,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     subscription (event_seq), subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
DECLARE
    v_happenings billing.happening[];
BEGIN
    SELECT array_agg(
        ROW(
            s.customer_id, s.subscription_id, s.event_seq + e.no, e.event_type, NULL, NULL, p_invoice.invoice_id, NULL,
            NULL, true
        )::billing.happening
        ORDER BY e.no
    )
    INTO v_happenings
    FROM billing.subscription AS s
    CROSS JOIN (VALUES (1, 'InvoiceOpened'), (2, 'InvoicePaid')) AS e (no, event_type)
    WHERE s.customer_id = p_invoice.customer_id
      AND s.subscription_id = p_invoice.subscription_id
      AND (e.no = 1 OR p_invoice.status = 'PAID');

    PERFORM billing.take_event_numbers(v_happenings);
    PERFORM billing.record_happenings(v_happenings, p_as_of);
END;
$function$;

COMMENT ON FUNCTION billing.record_change_invoice IS 'Tells the world of the invoice of a change; nothing where there is none.';
