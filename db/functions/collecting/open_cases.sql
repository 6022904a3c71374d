CREATE OR REPLACE FUNCTION billing.open_cases(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     reconciliation_case
    -- Raises:     nothing
    -- Idempotent: yes: one open case per attempt and kind
    INSERT INTO billing.reconciliation_case (
        kind, customer_id, invoice_id, attempt_id, amount, currency, detail, opened_at
    )
    SELECT
        c.kind, j.customer_id, j.invoice_id, j.attempt_id, c.amount, coalesce(j.currency, a.currency),
        jsonb_build_object(
            'outcome', j.outcome, 'source', j.source, 'expectedAmount', a.amount, 'expectedCurrency', a.currency,
            'reportedAmount', j.amount, 'reportedCurrency', j.currency,
            'expectedPaymentId', a.gateway_payment_id, 'reportedPaymentId', j.gateway_payment_id
        ),
        p_as_of
    FROM unnest(p_judgements) AS j
    INNER JOIN billing.payment_attempt AS a ON a.customer_id = j.customer_id AND a.attempt_id = j.attempt_id
    CROSS JOIN LATERAL (
        SELECT j.case_kind AS kind, j.amount AS amount
        WHERE j.case_kind IS NOT NULL
        UNION ALL
        SELECT 'LATE_PAYMENT', j.unexpected
        WHERE j.verdict = 'APPLIED' AND j.unexpected > 0 AND billing.treatment_of_unexpected(j) = 'CASE'
    ) AS c
    ORDER BY j.customer_id, j.attempt_id, c.kind
    ON CONFLICT (customer_id, attempt_id, kind) WHERE resolved_at IS NULL AND attempt_id IS NOT NULL DO NOTHING;
$function$;

COMMENT ON FUNCTION billing.open_cases IS 'Opens a case for what needs a person, with what was expected and what was reported.';
