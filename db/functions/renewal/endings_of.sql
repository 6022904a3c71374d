CREATE OR REPLACE FUNCTION billing.endings_of(
    p_renewals billing.renewal[]
)
RETURNS billing.ending[]
LANGUAGE sql
IMMUTABLE
SET search_path = ''
AS $function$
    -- Effective at the boundary, whenever it is processed.
    SELECT coalesce(
        array_agg(
            ROW(r.customer_id, r.subscription_id, r.to_status, r.reason, r.period_start)::billing.ending
            ORDER BY r.customer_id, r.subscription_id
        ),
        '{}'
    )
    FROM unnest(p_renewals) AS r
    WHERE r.verdict IN ('CANCEL', 'EXPIRE');
$function$;

COMMENT ON FUNCTION billing.endings_of IS 'The planned renewals that end their subscription instead.';
