CREATE OR REPLACE FUNCTION billing.record_forgiveness(
    p_invoice billing.invoice,
    p_moves billing.status_move[],
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
            s.customer_id, s.subscription_id, s.event_seq + x.place, x.event_type, x.from_status, x.to_status,
            x.invoice_id, NULL,
            CASE
                WHEN x.to_status IS NOT NULL THEN jsonb_build_object('row', billing.logged_row(s))
                ELSE billing.with_grace(NULL, s)
            END,
            true
        )::billing.happening
        ORDER BY x.place
    )
    INTO v_happenings
    FROM billing.subscription AS s
    CROSS JOIN LATERAL (
        SELECT
            1 AS place, 'InvoiceVoided' AS event_type, NULL::text AS from_status, NULL::text AS to_status,
            p_invoice.invoice_id
        UNION ALL
        SELECT
            2, CASE m.from_status WHEN 'PAST_DUE' THEN 'SubscriptionRecovered' ELSE 'SubscriptionActivated' END,
            m.from_status, m.to_status, NULL
        FROM unnest(p_moves) AS m
    ) AS x
    WHERE s.customer_id = p_invoice.customer_id AND s.subscription_id = p_invoice.subscription_id;

    PERFORM billing.take_event_numbers(v_happenings);
    PERFORM billing.record_happenings(v_happenings, p_as_of);
END;
$function$;

COMMENT ON FUNCTION billing.record_forgiveness IS 'Tells that an invoice was forgiven, and what that did to its subscription.';
