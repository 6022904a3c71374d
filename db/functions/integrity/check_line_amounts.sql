CREATE OR REPLACE FUNCTION billing.check_line_amounts(
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
        'line_amounts', 'BROKEN', l.customer_id, format('invoice %s, line %s', l.invoice_id, l.line_no),
        format('amount %s, computed again %s', l.amount, billing.recomputed_amount(l))
    FROM billing.invoice_line AS l
    WHERE l.amount IS DISTINCT FROM billing.recomputed_amount(l) AND (p_customers IS NULL OR l.customer_id = ANY (p_customers));
END;
$function$;

COMMENT ON FUNCTION billing.check_line_amounts IS
'A line whose amount is not what its own figures give: an invoice cannot be explained.';
