CREATE OR REPLACE FUNCTION billing.refund_differences(
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
    -- What they have is looked for in all that we have, what we have in the reports at hand; see settlement_differences.
    WITH at_hand AS (
        SELECT r.settlement_report_id, r.covers_from
        FROM billing.reports_at_hand(p_report) AS r
    )

    SELECT
        CASE WHEN f.refund_id IS NULL OR f.status <> 'SUCCEEDED' THEN 'MISSING_HERE' ELSE 'SETTLEMENT_MISMATCH' END,
        l.kind, l.gateway_id, f.customer_id, f.invoice_id, NULL::bigint, f.refund_id, l.amount, l.currency,
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
        'MISSING_AT_GATEWAY', 'REFUND', f.gateway_refund_id, f.customer_id, f.invoice_id, NULL, f.refund_id, f.amount,
        f.currency,
        jsonb_build_object('gatewayId', f.gateway_refund_id, 'reference', f.idempotency_key, 'endedAt', f.ended_at)
    FROM billing.refund AS f
    WHERE f.gateway_account_id = p_report.gateway_account_id
      AND f.status = 'SUCCEEDED'
      AND f.requested_at >= (SELECT min(h.covers_from) FROM at_hand AS h)
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

COMMENT ON FUNCTION billing.refund_differences IS
'What a settlement report and this database do not agree on about refunds, in both directions.';
