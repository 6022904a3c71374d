CREATE OR REPLACE FUNCTION billing.unnumbered_history(
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
    SELECT u.at, NULL::bigint, u.what, u.actor, i.invoice_id, u.attempt_id, u.amount, u.currency, u.detail, u.recorded_at
    FROM billing.invoice AS i
    CROSS JOIN LATERAL (
        SELECT
            a.started_at AS at, format('Attempt %s started', a.attempt_no) AS what, NULL::text AS actor, a.attempt_id,
            a.amount, a.currency, jsonb_build_object('key', a.idempotency_key) AS detail, a.recorded_at
        FROM billing.payment_attempt AS a
        WHERE a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
        UNION ALL
        SELECT
            r.as_of, format('%s said %s, %s', r.source, r.outcome, r.verdict), NULL, a.attempt_id, r.amount, r.currency,
            jsonb_strip_nulls(jsonb_build_object(
                'attemptNo', a.attempt_no, 'code', r.code, 'gatewayPaymentId', r.gateway_payment_id
            )),
            r.recorded_at
        FROM billing.payment_attempt AS a
        INNER JOIN billing.payment_report AS r ON r.customer_id = a.customer_id AND r.attempt_id = a.attempt_id
        WHERE a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
        UNION ALL
        SELECT
            w.received_at, format('Webhook %s: %s', w.event_type, w.status), NULL, a.attempt_id, NULL, NULL,
            jsonb_build_object('eventId', w.event_id), w.received_wall_at
        FROM billing.payment_attempt AS a
        INNER JOIN billing.webhook_event AS w ON w.customer_id = a.customer_id AND w.attempt_id = a.attempt_id
        WHERE a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
        UNION ALL
        SELECT
            c.as_of, format('Credit %s', c.kind), c.actor, c.attempt_id, c.amount, c.currency,
            jsonb_build_object('reason', c.reason, 'balanceAfter', c.balance_after), c.recorded_at
        FROM billing.credit_entry AS c
        WHERE c.customer_id = i.customer_id AND c.invoice_id = i.invoice_id
    ) AS u
    WHERE i.customer_id = p_customer_id AND i.subscription_id = p_subscription_id;
$function$;

COMMENT ON FUNCTION billing.unnumbered_history IS
'What has no event number in the history of a subscription: attempts, what gateways said, webhooks, credit; amounts in minor units.';
