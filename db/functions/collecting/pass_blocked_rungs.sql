CREATE OR REPLACE FUNCTION billing.pass_blocked_rungs(
    p_triage billing.triage[]
)
RETURNS billing.judgement[]
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- No attempt, but the rung counts, so that the end of dunning stands.
    SELECT coalesce(
        array_agg(billing.engine_judgement(i, NULL, 'PASSED', NULL, NULL) ORDER BY i.customer_id, i.invoice_id), '{}'
    )
    FROM unnest(p_triage) AS t
    INNER JOIN billing.invoice AS i ON i.customer_id = t.customer_id AND i.invoice_id = t.invoice_id
    WHERE t.way = 'PASS';
$function$;

COMMENT ON FUNCTION billing.pass_blocked_rungs IS
'Judgements for invoices whose payment method may not be tried: the rung passes at its time.';
