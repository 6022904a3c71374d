CREATE OR REPLACE FUNCTION billing.charge_differences(
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
        'MISSING_AT_GATEWAY', 'CHARGE', a.gateway_payment_id, a.customer_id, a.invoice_id, a.attempt_id, NULL,
        a.captured_amount, a.currency,
        jsonb_build_object('gatewayId', a.gateway_payment_id, 'reference', a.idempotency_key, 'endedAt', a.ended_at)
    FROM billing.payment_attempt AS a
    WHERE a.gateway_account_id = p_report.gateway_account_id
      AND a.status = 'SUCCEEDED'
      AND a.started_at >= (SELECT min(h.covers_from) FROM at_hand AS h)
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
      );
$function$;

COMMENT ON FUNCTION billing.charge_differences IS
'What a settlement report and this database do not agree on about charges, in both directions.';
