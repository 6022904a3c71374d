CREATE OR REPLACE FUNCTION billing_ops.compare_settlement(
    p_report_id bigint,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.settlement_difference
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      settlement_report, one row; payment_attempt and refund, by the updates
-- Writes:     settlement_report, reconciliation_case, payment_attempt, refund
-- Raises:     SB104 p_as_of, SB211 report
-- Idempotent: yes in its cases: a difference that has an open case gets no second one
-- An attempt or refund of ours whose outcome is open is looked up at once, which may well settle the difference. Nothing
-- else moves: a person decides.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_report billing.settlement_report := billing.require_open_report(p_report_id);
    v_differences billing.settlement_difference[] := ARRAY(SELECT d FROM billing.settlement_differences(v_report) AS d);
BEGIN
    INSERT INTO billing.reconciliation_case (
        kind, customer_id, invoice_id, attempt_id, refund_id, amount, currency, detail, opened_at
    )
    SELECT
        d.kind, d.customer_id, d.invoice_id, d.attempt_id, d.refund_id, d.amount, d.currency,
        d.detail || jsonb_build_object('settlementReportId', p_report_id, 'item', d.item), v_as_of
    FROM unnest(v_differences) AS d
    WHERE NOT EXISTS (
        SELECT 1
        FROM billing.reconciliation_case AS c
        WHERE c.resolved_at IS NULL AND c.kind = d.kind AND c.detail ->> 'gatewayId' = d.gateway_id
          AND c.detail ->> 'item' = d.item
    )
    ORDER BY d.kind, d.item, d.gateway_id
    ON CONFLICT DO NOTHING;

    UPDATE billing.payment_attempt AS a
    SET next_lookup_at = v_as_of
    FROM unnest(v_differences) AS d
    WHERE d.kind = 'MISSING_HERE' AND a.customer_id = d.customer_id AND a.attempt_id = d.attempt_id
      AND a.ended_at IS NULL;
    UPDATE billing.refund AS f
    SET next_lookup_at = v_as_of
    FROM unnest(v_differences) AS d
    WHERE d.kind = 'MISSING_HERE' AND f.customer_id = d.customer_id AND f.refund_id = d.refund_id
      AND f.ended_at IS NULL AND f.send_count > 0;
    UPDATE billing.settlement_report AS r
    SET compared_at = v_as_of
    WHERE r.settlement_report_id = p_report_id;

    RETURN QUERY SELECT d.* FROM unnest(v_differences) AS d ORDER BY d.kind, d.item, d.gateway_id;
END;
$function$;

COMMENT ON FUNCTION billing_ops.compare_settlement IS
'Compares a loaded settlement report with what this database knows, opens a case for each difference, and returns all of them.';
