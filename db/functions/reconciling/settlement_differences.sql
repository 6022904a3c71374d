CREATE OR REPLACE FUNCTION billing.settlement_differences(
    p_report billing.settlement_report
)
RETURNS SETOF billing.settlement_difference
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- What they have is looked for in all that we have, by their id, else by our reference; what bears the reference of
    -- another database (a shard that shares the account, the original of a clone) is none of ours. What we have is looked
    -- for where it ended within the time of the report and began within it or within that of the report right before it,
    -- and in both: the gateway's own instant lies between the two, on either side of midnight.
    WITH at_hand AS (
        SELECT r.settlement_report_id, r.covers_from
        FROM billing.settlement_report AS r
        WHERE r.settlement_report_id = p_report.settlement_report_id
           OR (
               r.gateway_account_id = p_report.gateway_account_id
               AND r.covers_to = p_report.covers_from
               AND r.compared_at IS NOT NULL
           )
    ),

    begins AS (
        SELECT min(h.covers_from) AS since
        FROM at_hand AS h
    )

    SELECT
        CASE
            WHEN a.attempt_id IS NULL OR a.status <> 'SUCCEEDED' THEN 'MISSING_HERE' ELSE 'SETTLEMENT_MISMATCH'
        END,
        l.kind, l.gateway_id, a.customer_id, a.invoice_id, a.attempt_id, NULL::bigint, l.amount, l.currency,
        jsonb_build_object(
            'gatewayId', l.gateway_id, 'reference', l.reference, 'status', a.status, 'amountHere', a.captured_amount,
            'currencyHere', a.currency, 'gatewayIdHere', a.gateway_payment_id
        )
    FROM billing.settlement_line AS l
    LEFT JOIN LATERAL (
        SELECT x.*
        FROM billing.payment_attempt AS x
        WHERE (x.gateway_account_id = p_report.gateway_account_id AND x.gateway_payment_id = l.gateway_id)
           OR x.idempotency_key = l.reference
        ORDER BY (x.gateway_payment_id = l.gateway_id) DESC NULLS LAST
        LIMIT 1
    ) AS a ON true
    WHERE l.settlement_report_id = p_report.settlement_report_id
      AND l.kind = 'CHARGE'
      AND (a.attempt_id IS NOT NULL OR billing.may_be_our_key(l.reference))
      AND (
          a.attempt_id IS NULL OR a.status <> 'SUCCEEDED' OR a.captured_amount <> l.amount OR a.currency <> l.currency
          OR a.gateway_payment_id <> l.gateway_id OR a.gateway_account_id <> p_report.gateway_account_id
      )
    UNION ALL
    SELECT
        CASE WHEN f.refund_id IS NULL OR f.status <> 'SUCCEEDED' THEN 'MISSING_HERE' ELSE 'SETTLEMENT_MISMATCH' END,
        l.kind, l.gateway_id, f.customer_id, f.invoice_id, NULL, f.refund_id, l.amount, l.currency,
        jsonb_build_object(
            'gatewayId', l.gateway_id, 'reference', l.reference, 'status', f.status, 'amountHere', f.amount,
            'currencyHere', f.currency, 'gatewayIdHere', f.gateway_refund_id
        )
    FROM billing.settlement_line AS l
    LEFT JOIN LATERAL (
        SELECT x.*
        FROM billing.refund AS x
        WHERE (x.gateway_account_id = p_report.gateway_account_id AND x.gateway_refund_id = l.gateway_id)
           OR x.idempotency_key = l.reference
        ORDER BY (x.gateway_refund_id = l.gateway_id) DESC NULLS LAST
        LIMIT 1
    ) AS f ON true
    WHERE l.settlement_report_id = p_report.settlement_report_id
      AND l.kind = 'REFUND'
      AND (f.refund_id IS NOT NULL OR billing.may_be_our_key(l.reference))
      AND (
          f.refund_id IS NULL OR f.status <> 'SUCCEEDED' OR f.amount <> l.amount OR f.currency <> l.currency
          OR f.gateway_refund_id <> l.gateway_id
      )
    UNION ALL
    SELECT
        'MISSING_AT_GATEWAY', 'CHARGE', a.gateway_payment_id, a.customer_id, a.invoice_id, a.attempt_id, NULL,
        a.captured_amount, a.currency,
        jsonb_build_object('gatewayId', a.gateway_payment_id, 'reference', a.idempotency_key, 'endedAt', a.ended_at)
    FROM billing.payment_attempt AS a
    WHERE a.gateway_account_id = p_report.gateway_account_id
      AND a.status = 'SUCCEEDED'
      AND a.started_at >= (SELECT b.since FROM begins AS b)
      AND a.started_at < p_report.covers_to
      AND a.ended_at >= p_report.covers_from
      AND a.ended_at < p_report.covers_to
      AND NOT EXISTS (
          SELECT 1
          FROM at_hand AS h
          INNER JOIN billing.settlement_line AS l ON l.settlement_report_id = h.settlement_report_id
          WHERE l.kind = 'CHARGE' AND l.gateway_id = a.gateway_payment_id
      )
      AND NOT EXISTS (
          SELECT 1
          FROM at_hand AS h
          INNER JOIN billing.settlement_line AS l ON l.settlement_report_id = h.settlement_report_id
          WHERE l.kind = 'CHARGE' AND l.reference = a.idempotency_key
      )
    UNION ALL
    SELECT
        'MISSING_AT_GATEWAY', 'REFUND', f.gateway_refund_id, f.customer_id, f.invoice_id, NULL, f.refund_id, f.amount,
        f.currency,
        jsonb_build_object('gatewayId', f.gateway_refund_id, 'reference', f.idempotency_key, 'endedAt', f.ended_at)
    FROM billing.refund AS f
    WHERE f.gateway_account_id = p_report.gateway_account_id
      AND f.status = 'SUCCEEDED'
      AND f.requested_at >= (SELECT b.since FROM begins AS b)
      AND f.ended_at >= p_report.covers_from
      AND f.ended_at < p_report.covers_to
      AND NOT EXISTS (
          SELECT 1
          FROM at_hand AS h
          INNER JOIN billing.settlement_line AS l ON l.settlement_report_id = h.settlement_report_id
          WHERE l.kind = 'REFUND' AND l.gateway_id = f.gateway_refund_id
      )
      AND NOT EXISTS (
          SELECT 1
          FROM at_hand AS h
          INNER JOIN billing.settlement_line AS l ON l.settlement_report_id = h.settlement_report_id
          WHERE l.kind = 'REFUND' AND l.reference = f.idempotency_key
      );
$function$;

COMMENT ON FUNCTION billing.settlement_differences IS
'What a settlement report and this database do not agree on, in both directions.';
