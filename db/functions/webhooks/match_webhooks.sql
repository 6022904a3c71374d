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
    -- failure are settled; anything else is a reason to ask. What the customer has done at the gateway himself bears no key
    -- of ours; the intent names its invoice, of which the last attempt without a payment id is meant: asked about while it is
    -- open, and the one that money is recorded on afterwards.
    SELECT
        w.webhook_event_id, a.customer_id, a.attempt_id,
        CASE
            WHEN by_id.attempt_id <> by_key.attempt_id THEN 'AMBIGUOUS'
            WHEN a.attempt_id IS NULL THEN 'UNMATCHED'
            WHEN a.gateway_account_id <> w.gateway_account_id THEN 'REJECTED'
            WHEN by_intent.attempt_id IS NOT NULL AND a.ended_at IS NULL THEN 'LOOKUP'
            WHEN by_intent.attempt_id IS NOT NULL AND (w.payload ->> 'outcome' = 'SUCCEEDED') IS NOT TRUE THEN 'IGNORED'
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
    LEFT JOIN LATERAL (
        SELECT x.customer_id, x.attempt_id
        FROM billing.invoice AS i
        INNER JOIN billing.payment_attempt AS x ON x.customer_id = i.customer_id AND x.invoice_id = i.invoice_id
        WHERE by_id.attempt_id IS NULL AND by_key.attempt_id IS NULL
          AND i.gateway_account_id = w.gateway_account_id
          AND i.gateway_intent_id = w.payload ->> 'intentId'
          AND x.gateway_account_id = w.gateway_account_id
          AND x.gateway_payment_id IS NULL
        ORDER BY x.attempt_no DESC
        LIMIT 1
    ) AS by_intent ON true
    LEFT JOIN billing.payment_attempt AS a
        ON a.customer_id = coalesce(by_id.customer_id, by_key.customer_id, by_intent.customer_id)
        AND a.attempt_id = coalesce(by_id.attempt_id, by_key.attempt_id, by_intent.attempt_id)
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
