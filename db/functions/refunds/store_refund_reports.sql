CREATE OR REPLACE FUNCTION billing.store_refund_reports(
    p_judgements billing.refund_judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     refund_report, reconciliation_case
    -- Raises:     nothing
    -- Idempotent: no; one open case per refund and kind
    INSERT INTO billing.refund_report (
        customer_id, refund_id, source, claim_epoch, outcome, verdict, gateway_refund_id, amount, currency, code, as_of
    )
    SELECT
        j.customer_id, j.refund_id, j.source, j.claim_epoch, j.outcome, j.verdict, j.gateway_refund_id, j.amount,
        j.currency, j.code, p_as_of
    FROM unnest(p_judgements) AS j
    ORDER BY j.customer_id, j.refund_id;

    INSERT INTO billing.reconciliation_case (
        kind, customer_id, invoice_id, refund_id, amount, currency, detail, opened_at
    )
    SELECT
        j.case_kind, f.customer_id, f.invoice_id, f.refund_id, f.amount, f.currency,
        jsonb_build_object(
            'outcome', j.outcome, 'source', j.source, 'code', j.code, 'purpose', f.purpose,
            'reportedAmount', j.amount, 'reportedCurrency', j.currency,
            'expectedRefundId', f.gateway_refund_id, 'reportedRefundId', j.gateway_refund_id
        ),
        p_as_of
    FROM unnest(p_judgements) AS j
    INNER JOIN billing.refund AS f ON f.customer_id = j.customer_id AND f.refund_id = j.refund_id
    WHERE j.case_kind IS NOT NULL
    ORDER BY f.customer_id, f.refund_id
    ON CONFLICT (customer_id, refund_id, kind) WHERE resolved_at IS NULL AND refund_id IS NOT NULL DO NOTHING;
$function$;

COMMENT ON FUNCTION billing.store_refund_reports IS
'Keeps what was said about each refund, believed or not, and opens a case where a person is needed.';
