CREATE OR REPLACE FUNCTION billing.check_open_attempts(
    p_customers bigint[] DEFAULT NULL
)
RETURNS SETOF billing.violation
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
SET plan_cache_mode = force_custom_plan
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
BEGIN
    RETURN QUERY
    SELECT
        'open_attempts', 'BROKEN', a.customer_id, format('invoice %s', a.invoice_id),
        format('open attempts %s', array_agg(a.attempt_id))
    FROM billing.payment_attempt AS a
    WHERE a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
      AND (p_customers IS NULL OR a.customer_id = ANY (p_customers))
    GROUP BY a.customer_id, a.invoice_id
    HAVING count(*) > 1;
END;
$function$;

COMMENT ON FUNCTION billing.check_open_attempts IS
'Two payment attempts of one invoice are open at once: the customer may be charged twice.';
