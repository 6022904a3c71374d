CREATE FUNCTION billing_test.outbox_event(
    p_subscription_id bigint,
    p_seq bigint,
    p_created_at timestamptz DEFAULT clock_timestamp()
)
RETURNS bigint
LANGUAGE sql
AS $function$
    INSERT INTO billing.outbox_event (
        aggregate_type, aggregate_id, aggregate_seq, customer_id, event_type, payload, occurred_at, created_at
    )
    VALUES (
        'subscription', p_subscription_id, p_seq, p_subscription_id, 'InvoiceOpened',
        jsonb_build_object('seq', p_seq), '2027-01-31T10:30:00Z', p_created_at
    )
    RETURNING outbox_event_id;
$function$;

COMMENT ON FUNCTION billing_test.outbox_event IS
'Writes an event about a subscription into the outbox, the payload holding its number only, and returns its id.';
