CREATE OR REPLACE FUNCTION billing.match_refund_webhooks(
    p_webhook_event_ids bigint[]
)
RETURNS SETOF billing.refund_match
LANGUAGE sql
STABLE
SET search_path = ''
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     22xxx for an amount that is no number
    -- Idempotent: yes
    -- By exact refund id within the account, or by our reference. Two refunds of one amount are told apart by these alone.
    SELECT
        w.webhook_event_id, f.customer_id, f.refund_id,
        CASE
            WHEN by_id.refund_id <> by_key.refund_id THEN 'AMBIGUOUS'
            WHEN f.refund_id IS NULL THEN 'UNMATCHED'
            WHEN f.gateway_account_id <> w.gateway_account_id THEN 'REJECTED'
            WHEN w.payload ->> 'outcome' = 'SUCCEEDED' AND w.payload ? 'amount' AND w.payload ? 'currency'
                AND w.payload ->> 'refundId' IS NOT NULL THEN 'SETTLE'
            WHEN w.payload ->> 'outcome' = 'DECLINED' AND w.payload ? 'code' THEN 'SETTLE'
            WHEN f.ended_at IS NOT NULL THEN 'IGNORED'
            ELSE 'LOOKUP'
        END,
        ROW(
            f.customer_id, f.refund_id, NULL, w.payload ->> 'outcome', w.payload ->> 'refundId',
            (w.payload ->> 'amount')::bigint, w.payload ->> 'currency', w.payload ->> 'code', NULL, 'WEBHOOK'
        )::billing.refund_result
    FROM billing.webhook_event AS w
    LEFT JOIN billing.refund AS by_id
        ON by_id.gateway_account_id = w.gateway_account_id AND by_id.gateway_refund_id = w.payload ->> 'refundId'
    LEFT JOIN billing.refund AS by_key ON by_key.idempotency_key = w.payload ->> 'reference'
    LEFT JOIN billing.refund AS f
        ON f.customer_id = coalesce(by_id.customer_id, by_key.customer_id)
        AND f.refund_id = coalesce(by_id.refund_id, by_key.refund_id)
    WHERE w.webhook_event_id = ANY (p_webhook_event_ids) AND w.payload ? 'refundId'
    ORDER BY w.webhook_event_id;
$function$;

COMMENT ON FUNCTION billing.match_refund_webhooks IS
'Finds the refund that each of these webhook events is about, by exact reference only.';
