CREATE OR REPLACE FUNCTION billing.lift_suspensions(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      as lift_unowed_suspensions
    -- Writes:     as lift_unowed_suspensions
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT billing.lift_unowed_suspensions(
        ARRAY(
            SELECT ROW(i.customer_id, max(i.subscription_id))::billing.subscription_key
            FROM unnest(p_judgements) AS j
            INNER JOIN billing.invoice AS i ON i.customer_id = j.customer_id AND i.invoice_id = j.invoice_id
            WHERE j.verdict = 'APPLIED'
              AND i.status = 'PAID'
              AND i.failed_at IS NOT NULL
              AND i.subscription_id IS NOT NULL
            GROUP BY i.customer_id, i.resource_id
            ORDER BY i.customer_id, max(i.subscription_id)
        ),
        p_as_of
    );
$function$;

COMMENT ON FUNCTION billing.lift_suspensions IS
'Lifts the suspensions of resources whose last given-up invoice was paid now.';
