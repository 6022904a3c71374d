CREATE FUNCTION billing_test.outbox_results(
    p_relay text,
    p_outcome text DEFAULT 'PUBLISHED',
    p_error text DEFAULT NULL
)
RETURNS billing.outbox_result[]
LANGUAGE sql
AS $function$
    SELECT coalesce(
        array_agg(
            ROW(
                m.outbox_event_id, m.created_at, m.customer_id, m.partition, m.lease_epoch, p_outcome, p_error
            )::billing.outbox_result
            ORDER BY m.outbox_event_id
        ),
        '{}'
    )
    FROM billing_worker.lease_outbox(p_relay, 1000) AS m;
$function$;

COMMENT ON FUNCTION billing_test.outbox_results IS
'Leases what there is for a relay and gives everything the same outcome, ready for confirm_outbox.';
