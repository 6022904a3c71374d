CREATE OR REPLACE FUNCTION billing.results_of_round(
    p_results billing.charge_result[],
    p_round_no integer
)
RETURNS billing.charge_result[]
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT coalesce(array_agg(n.result ORDER BY n.customer_id, n.attempt_id), '{}')
    FROM (
        SELECT
            a.customer_id,
            a.attempt_id,
            ROW(
                r.customer_id, r.attempt_id, r.claim_epoch, r.outcome, r.gateway_payment_id, r.amount, r.currency,
                r.code, r.retry_after, r.action_expires_at, r.source
            )::billing.charge_result AS result,
            row_number() OVER (
                PARTITION BY a.customer_id, a.invoice_id
                ORDER BY billing.outcome_rank(r.outcome) DESC NULLS LAST, a.attempt_no, r.place
            ) AS round_no
        FROM unnest(p_results) WITH ORDINALITY AS r (
            customer_id, attempt_id, claim_epoch, outcome, gateway_payment_id, amount, currency, code, retry_after,
            action_expires_at, source, place
        )
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = r.customer_id AND a.attempt_id = r.attempt_id
    ) AS n
    WHERE n.round_no = p_round_no;
$function$;

COMMENT ON FUNCTION billing.results_of_round IS
'At most one result per invoice: the strongest of each in round 1, the next in round 2, and so on.';
