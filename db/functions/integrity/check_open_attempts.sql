CREATE OR REPLACE FUNCTION billing.check_open_attempts()
RETURNS SETOF billing.violation
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT
        'open_attempts', 'BROKEN', a.customer_id, format('invoice %s', a.invoice_id),
        format('open attempts %s', array_agg(a.attempt_id))
    FROM billing.payment_attempt AS a
    WHERE a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
    GROUP BY a.customer_id, a.invoice_id
    HAVING count(*) > 1;
$function$;

COMMENT ON FUNCTION billing.check_open_attempts IS
'Two payment attempts of one invoice are open at once: the customer may be charged twice.';
