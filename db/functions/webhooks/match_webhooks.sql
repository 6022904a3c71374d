CREATE OR REPLACE FUNCTION billing.match_webhooks(
    p_webhook_event_ids bigint[]
)
RETURNS SETOF billing.webhook_match
LANGUAGE sql
STABLE
SET search_path = ''
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- By exact payment id within the account, or by our reference, never "the newest open payment". Success and definite
    -- failure are settled; anything else is a reason to ask.
    SELECT
        w.webhook_event_id, a.customer_id, a.attempt_id,
        CASE
            WHEN by_id.attempt_id <> by_key.attempt_id THEN 'AMBIGUOUS'
            WHEN a.attempt_id IS NULL THEN 'UNMATCHED'
            WHEN a.gateway_account_id <> w.gateway_account_id THEN 'REJECTED'
            WHEN w.payload ->> 'outcome' = 'SUCCEEDED' AND n.amount > 0 AND w.payload ? 'currency' THEN 'SETTLE'
            WHEN w.payload ->> 'outcome' = 'DECLINED' AND w.payload ? 'code' AND w.payload ? 'paymentId' THEN 'SETTLE'
            WHEN a.ended_at IS NOT NULL THEN 'IGNORED'
            ELSE 'LOOKUP'
        END,
        ROW(
            a.customer_id, a.attempt_id, NULL, w.payload ->> 'outcome', w.payload ->> 'paymentId',
            n.amount, w.payload ->> 'currency', w.payload ->> 'code', NULL, NULL, 'WEBHOOK'
        )::billing.charge_result
    FROM billing.webhook_event AS w
    LEFT JOIN billing.payment_attempt AS by_id
        ON by_id.gateway_account_id = w.gateway_account_id AND by_id.gateway_payment_id = w.payload ->> 'paymentId'
    LEFT JOIN billing.payment_attempt AS by_key ON by_key.idempotency_key = w.payload ->> 'reference'
    LEFT JOIN billing.payment_attempt AS a
        ON a.customer_id = coalesce(by_id.customer_id, by_key.customer_id)
        AND a.attempt_id = coalesce(by_id.attempt_id, by_key.attempt_id)
    CROSS JOIN LATERAL (
        -- An amount that is none is a reason to ask.
        SELECT CASE
            WHEN w.payload ->> 'amount' ~ '^[0-9]{1,16}$' THEN (w.payload ->> 'amount')::bigint
        END AS amount
    ) AS n
    WHERE w.webhook_event_id = ANY (p_webhook_event_ids) AND (w.payload ? 'refundId') IS NOT TRUE
    ORDER BY w.webhook_event_id;
$function$;

COMMENT ON FUNCTION billing.match_webhooks IS 'Says of each webhook which attempt it is about and what to do with it.';
