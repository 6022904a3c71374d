CREATE OR REPLACE FUNCTION billing.store_reports(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     payment_report
    -- Raises:     nothing
    -- Idempotent: no
    INSERT INTO billing.payment_report (
        customer_id, attempt_id, source, claim_epoch, outcome, verdict, gateway_payment_id, amount, currency, code, as_of
    )
    SELECT
        j.customer_id, j.attempt_id, j.source, j.claim_epoch, j.outcome, j.verdict, j.gateway_payment_id, j.amount,
        j.currency, j.code, p_as_of
    FROM unnest(p_judgements) AS j
    WHERE j.attempt_id IS NOT NULL
    ORDER BY j.customer_id, j.attempt_id;
$function$;

COMMENT ON FUNCTION billing.store_reports IS 'Keeps what was said about each attempt, believed or not.';
