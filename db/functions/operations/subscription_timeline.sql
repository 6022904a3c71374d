CREATE OR REPLACE FUNCTION billing_ops.subscription_timeline(
    p_subscription_id bigint
)
RETURNS SETOF billing.timeline_entry
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB201 unknown subscription
-- Idempotent: yes
-- Why a subscription is what it is, in order of business time, and within an instant of the event number.
DECLARE
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
BEGIN
    RETURN QUERY
    SELECT t.*
    FROM (
        SELECT
            e.as_of AS at, e.event_seq, e.event_type AS what, e.actor, e.invoice_id, e.attempt_id, i.total AS amount,
            i.currency,
            jsonb_strip_nulls(jsonb_build_object('fromStatus', e.from_status, 'toStatus', e.to_status)) || e.detail AS detail
        FROM billing.subscription_event AS e
        LEFT JOIN billing.invoice AS i ON i.customer_id = e.customer_id AND i.invoice_id = e.invoice_id
        WHERE e.customer_id = v_customer_id AND e.subscription_id = p_subscription_id
        UNION ALL
        SELECT
            coalesce(i.issued_at, p.period_start), p.opened_seq, format('Period %s opened', p.kind), NULL, p.invoice_id,
            NULL, i.total, i.currency,
            jsonb_build_object(
                'periodStart', billing.to_rfc3339(p.period_start), 'periodEnd', billing.to_rfc3339(p.period_end)
            )
        FROM billing.subscription_period AS p
        LEFT JOIN billing.invoice AS i ON i.customer_id = p.customer_id AND i.invoice_id = p.invoice_id
        WHERE p.customer_id = v_customer_id AND p.subscription_id = p_subscription_id
        UNION ALL
        SELECT
            r.as_of, NULL, format('%s said %s, %s', r.source, r.outcome, r.verdict), NULL, a.invoice_id, a.attempt_id,
            r.amount, r.currency,
            jsonb_strip_nulls(jsonb_build_object(
                'attemptNo', a.attempt_no, 'code', r.code, 'gatewayPaymentId', r.gateway_payment_id,
                'key', a.idempotency_key
            ))
        FROM billing.invoice AS i
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
        INNER JOIN billing.payment_report AS r ON r.customer_id = a.customer_id AND r.attempt_id = a.attempt_id
        WHERE i.customer_id = v_customer_id AND i.subscription_id = p_subscription_id
        UNION ALL
        SELECT
            w.received_at, NULL, format('Webhook %s: %s', w.event_type, w.status), NULL, a.invoice_id, a.attempt_id,
            NULL, NULL, jsonb_build_object('eventId', w.event_id)
        FROM billing.invoice AS i
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
        INNER JOIN billing.webhook_event AS w ON w.customer_id = a.customer_id AND w.attempt_id = a.attempt_id
        WHERE i.customer_id = v_customer_id AND i.subscription_id = p_subscription_id
        UNION ALL
        SELECT
            c.as_of, NULL, format('Credit %s', c.kind), c.actor, c.invoice_id, c.attempt_id, c.amount, c.currency,
            jsonb_build_object('reason', c.reason, 'balanceAfter', c.balance_after)
        FROM billing.invoice AS i
        INNER JOIN billing.credit_entry AS c ON c.customer_id = i.customer_id AND c.invoice_id = i.invoice_id
        WHERE i.customer_id = v_customer_id AND i.subscription_id = p_subscription_id
    ) AS t
    ORDER BY t.at, t.event_seq NULLS FIRST, t.what;
END;
$function$;

COMMENT ON FUNCTION billing_ops.subscription_timeline IS
'The whole history of a subscription in order: changes with actor, periods, invoices with amounts, what gateways said with codes, webhooks, credit.';
