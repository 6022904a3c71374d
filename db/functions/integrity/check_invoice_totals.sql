CREATE OR REPLACE FUNCTION billing.check_invoice_totals(
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
        'invoice_totals', 'BROKEN', i.customer_id, format('invoice %s', i.invoice_id),
        format('total %s, lines %s, due %s, %s', i.total, coalesce(l.amount, 0), i.amount_due, i.status)
    FROM billing.invoice AS i
    LEFT JOIN LATERAL (
        SELECT sum(x.amount) AS amount
        FROM billing.invoice_line AS x
        WHERE x.customer_id = i.customer_id AND x.invoice_id = i.invoice_id
    ) AS l ON true
    WHERE (coalesce(l.amount, 0) <> i.total OR i.amount_due < 0 OR (i.status = 'PAID' AND i.amount_due <> 0))
      AND (p_customers IS NULL OR i.customer_id = ANY (p_customers));
END;
$function$;

COMMENT ON FUNCTION billing.check_invoice_totals IS
'An invoice whose total is not the sum of its lines, or that is PAID with something due: somebody was asked for a wrong amount.';
