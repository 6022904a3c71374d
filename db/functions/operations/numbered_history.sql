CREATE OR REPLACE FUNCTION billing.numbered_history(
    p_customer_id bigint,
    p_subscription_id bigint
)
RETURNS SETOF billing.history_entry
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- The log, the invoices of plain renewals, which have no entry of their own, and the timeline.
    SELECT
        e.as_of, e.event_seq, e.event_type, e.actor, e.invoice_id, e.attempt_id, i.total, i.currency,
        jsonb_strip_nulls(
            jsonb_build_object(
                'fromStatus', e.from_status, 'toStatus', e.to_status,
                'toPlanCode', (
                    SELECT pl.code
                    FROM billing.price AS pr
                    INNER JOIN billing.plan AS pl ON pl.plan_id = pr.plan_id
                    WHERE pr.price_id = (e.row_changes ->> 'price_id')::bigint
                ),
                'toQuantity', e.row_changes -> 'quantity'
            )
        ) || e.detail,
        e.recorded_at
    FROM billing.subscription_event AS e
    LEFT JOIN billing.invoice AS i ON i.customer_id = e.customer_id AND i.invoice_id = e.invoice_id
    WHERE e.customer_id = p_customer_id AND e.subscription_id = p_subscription_id
    UNION ALL
    SELECT
        i.issued_at, i.opened_seq, 'InvoiceOpened', NULL, i.invoice_id, NULL, i.total, i.currency,
        jsonb_build_object('planCode', i.plan_code, 'quantity', i.quantity, 'creditApplied', i.credit_applied),
        NULL
    FROM billing.invoice AS i
    WHERE i.customer_id = p_customer_id AND i.subscription_id = p_subscription_id AND i.opened_seq IS NOT NULL
    UNION ALL
    SELECT
        coalesce(e.as_of, i.issued_at, p.period_start), p.opened_seq, format('Period %s', p.kind), NULL, p.invoice_id, NULL,
        NULL, NULL,
        jsonb_strip_nulls(jsonb_build_object(
            'periodStart', billing.to_rfc3339(p.period_start), 'periodEnd', billing.to_rfc3339(p.period_end)
        )),
        e.recorded_at
    FROM billing.subscription_period AS p
    LEFT JOIN billing.subscription_event AS e
        ON e.customer_id = p.customer_id AND e.subscription_id = p.subscription_id AND e.event_seq = p.opened_seq
    LEFT JOIN billing.invoice AS i ON i.customer_id = p.customer_id AND i.invoice_id = p.invoice_id
    WHERE p.customer_id = p_customer_id AND p.subscription_id = p_subscription_id;
$function$;

COMMENT ON FUNCTION billing.numbered_history IS
'What has an event number in the history of a subscription; amounts in minor units.';
