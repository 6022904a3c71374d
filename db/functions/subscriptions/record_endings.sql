CREATE OR REPLACE FUNCTION billing.record_endings(
    p_endings billing.ending[],
    p_moves billing.status_move[],
    p_closed billing.closed_invoice[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; subscriptions are locked by the caller
-- Writes:     subscription (event_seq), subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
DECLARE
    v_happenings billing.happening[];
BEGIN
    SELECT array_agg(
        ROW(
            n.customer_id, n.subscription_id, s.event_seq + n.no, n.event_type, m.from_status, n.to_status, n.invoice_id,
            NULL,
            CASE WHEN n.to_status IS NOT NULL THEN n.detail || jsonb_build_object('row', billing.logged_row(s)) ELSE n.detail END,
            true
        )::billing.happening
        ORDER BY n.customer_id, n.subscription_id, n.no
    )
    INTO v_happenings
    FROM (
        SELECT
            x.*,
            row_number() OVER (PARTITION BY x.customer_id, x.subscription_id ORDER BY x.place, x.invoice_id) AS no
        FROM (
            SELECT
                c.customer_id, c.subscription_id, 1 AS place, c.invoice_id,
                CASE c.status WHEN 'VOID' THEN 'InvoiceVoided' ELSE 'InvoiceFailed' END AS event_type,
                NULL AS to_status, NULL::jsonb AS detail
            FROM unnest(p_closed) AS c
            UNION ALL
            SELECT
                e.customer_id, e.subscription_id, 2, NULL,
                CASE e.to_status WHEN 'CANCELED' THEN 'SubscriptionCanceled' ELSE 'SubscriptionExpired' END,
                e.to_status, jsonb_build_object('reason', e.reason, 'endedAt', billing.to_rfc3339(e.ended_at))
            FROM unnest(p_endings) AS e
            UNION ALL
            SELECT
                e.customer_id, e.subscription_id, 3, NULL, 'ResourceSuspended', NULL,
                jsonb_build_object('by', 'billing')
            FROM unnest(p_endings) AS e
            INNER JOIN billing.subscription AS s
                ON s.customer_id = e.customer_id AND s.subscription_id = e.subscription_id
            INNER JOIN billing.dunning_policy AS dp ON dp.dunning_policy_id = s.dunning_policy_id
            WHERE e.reason = 'payment_failed' AND dp.suspend_resource
        ) AS x
    ) AS n
    INNER JOIN billing.subscription AS s
        ON s.customer_id = n.customer_id AND s.subscription_id = n.subscription_id
    LEFT JOIN unnest(p_moves) AS m
        ON m.customer_id = n.customer_id AND m.subscription_id = n.subscription_id AND n.to_status IS NOT NULL;

    PERFORM billing.take_event_numbers(v_happenings);
    PERFORM billing.record_happenings(v_happenings, p_as_of);
END;
$function$;

COMMENT ON FUNCTION billing.record_endings IS
'Numbers and records what ending subscriptions brings with it: invoices closed, the end itself, the suspension.';
