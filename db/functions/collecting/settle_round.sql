CREATE OR REPLACE FUNCTION billing.settle_round(
    p_results billing.charge_result[],
    p_as_of timestamptz
)
RETURNS SETOF billing.settlement
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      as settle_attempts, which holds those up to the attempts
-- Writes:     as settle_attempts
-- Raises:     nothing of its own
-- Idempotent: yes
DECLARE
    v_judgements billing.judgement[] := billing.judge_results(p_results, p_as_of);
BEGIN
    PERFORM billing.store_reports(v_judgements, p_as_of);
    -- What was said before or too late changes nothing.
    IF EXISTS (SELECT FROM unnest(v_judgements) AS j WHERE j.verdict IN ('APPLIED', 'REJECTED')) THEN
        PERFORM billing.update_attempts(v_judgements, p_as_of);
        PERFORM billing.apply_judgements(v_judgements, p_as_of);
    END IF;

    RETURN QUERY
    SELECT j.customer_id, j.attempt_id, j.outcome, j.verdict, a.status, i.invoice_id, i.status, s.status
    FROM unnest(v_judgements) AS j
    INNER JOIN billing.payment_attempt AS a ON a.customer_id = j.customer_id AND a.attempt_id = j.attempt_id
    INNER JOIN billing.invoice AS i ON i.customer_id = a.customer_id AND i.invoice_id = a.invoice_id
    LEFT JOIN billing.subscription AS s
        ON s.customer_id = i.customer_id AND s.subscription_id = i.subscription_id;
END;
$function$;

COMMENT ON FUNCTION billing.settle_round IS
'Settles results of which no two are about one invoice: judge, then write, as one pipeline of set operations.';
