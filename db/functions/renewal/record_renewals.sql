CREATE OR REPLACE FUNCTION billing.record_renewals(
    p_renewals billing.renewal[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     outbox_event; subscription_event where an invoice came to nothing due, a plan changed or it paused
-- Raises:     nothing of its own
-- Idempotent: no
-- A plain renewal has no log entry: its period row, opened under the same number, is its log.
BEGIN
    INSERT INTO billing.outbox_event (
        aggregate_type, aggregate_id, aggregate_seq, customer_id, event_type, payload, occurred_at
    )
    SELECT
        'subscription', r.subscription_id, r.event_seq + 1, r.customer_id, 'InvoiceOpened',
        jsonb_build_object(
            'customerId', r.customer_id, 'subscriptionId', r.subscription_id, 'resourceRef', res.external_ref,
            'occurredAt', billing.to_rfc3339(p_as_of), 'version', r.version + 1
        ) || billing.invoice_payload(i),
        p_as_of
    FROM unnest(p_renewals) AS r
    INNER JOIN billing.invoice AS i ON i.customer_id = r.customer_id AND i.invoice_id = r.invoice_id
    INNER JOIN billing.resource AS res ON res.customer_id = r.customer_id AND res.resource_id = r.resource_id
    WHERE r.verdict = 'RENEW'
    ORDER BY r.customer_id, r.subscription_id;

    PERFORM billing.record_happenings(h.happenings, p_as_of)
    FROM (
        SELECT array_agg(
            ROW(
                r.customer_id, r.subscription_id, r.event_seq + e.no, e.event_type,
                CASE WHEN e.moves AND r.to_status <> r.from_status THEN r.from_status END,
                CASE WHEN e.moves AND r.to_status <> r.from_status THEN r.to_status END,
                r.invoice_id, NULL,
                e.detail || CASE
                    WHEN e.event_type IN ('SubscriptionPlanChanged', 'SubscriptionPaused')
                    THEN jsonb_build_object('row', billing.logged_row(s))
                    ELSE '{}'
                END,
                true
            )::billing.happening
            ORDER BY r.customer_id, r.subscription_id, e.no
        ) AS happenings
        FROM unnest(p_renewals) AS r
        INNER JOIN billing.subscription AS s
            ON s.customer_id = r.customer_id AND s.subscription_id = r.subscription_id
        CROSS JOIN LATERAL (
            SELECT 2 AS no, 'InvoicePaid' AS event_type, false AS moves, '{}'::jsonb AS detail
            WHERE r.verdict = 'RENEW' AND r.credit = r.total
            UNION ALL
            SELECT
                3, CASE r.from_status WHEN 'TRIALING' THEN 'SubscriptionActivated' ELSE 'SubscriptionRenewed' END,
                true, '{}'
            WHERE r.verdict = 'RENEW' AND r.credit = r.total
            UNION ALL
            SELECT
                r.event_count, 'SubscriptionPlanChanged', false,
                jsonb_build_object('fromPlanCode', r.from_plan_code, 'fromQuantity', r.from_quantity)
            WHERE r.verdict = 'RENEW' AND r.from_plan_code IS NOT NULL
            UNION ALL
            SELECT 1, 'SubscriptionPaused', true, '{}'
            WHERE r.verdict = 'PAUSE'
        ) AS e
        WHERE r.verdict = 'PAUSE' OR (r.verdict = 'RENEW' AND (r.credit = r.total OR r.from_plan_code IS NOT NULL))
    ) AS h
    WHERE h.happenings IS NOT NULL;
END;
$function$;

COMMENT ON FUNCTION billing.record_renewals IS
'Tells the world of the invoices that the renewals opened, of those that were paid at once by credit or came to zero, of changes that took effect and of pauses that began. Runs after the rows are written, so that payloads show them.';
