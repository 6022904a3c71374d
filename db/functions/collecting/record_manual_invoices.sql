CREATE OR REPLACE FUNCTION billing.record_manual_invoices(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      customer, for its event counter; after credit balances
    -- Writes:     customer, outbox_event
    -- Raises:     nothing
    -- Idempotent: no
    -- One at a time: such invoices are few, and each event takes the next number of its customer.
    SELECT billing.record_customer_event(
        e.customer_id, e.event_type,
        CASE WHEN e.event_type LIKE 'Invoice%' THEN billing.invoice_payload(i) ELSE '{}' END || coalesce(e.detail, '{}'),
        p_as_of
    )
    FROM billing.invoice_happenings(p_judgements) AS e
    INNER JOIN billing.invoice AS i ON i.customer_id = e.customer_id AND i.invoice_id = e.invoice_id
    WHERE e.subscription_id IS NULL AND e.event_type <> 'RetryPassed'
    ORDER BY e.customer_id, e.place, e.invoice_id, e.attempt_id;
$function$;

COMMENT ON FUNCTION billing.record_manual_invoices IS
'Tells what became of invoices without a subscription, as events of their customers.';
