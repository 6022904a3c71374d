CREATE OR REPLACE FUNCTION billing.check_billed_periods(
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
        'billed_periods', 'BROKEN', p.customer_id, format('subscription %s', p.subscription_id),
        format('period from %s is covered by invoice %s (%s)', p.period_start, p.invoice_id, coalesce(i.status, 'missing'))
    FROM billing.subscription_period AS p
    INNER JOIN billing.subscription AS s ON s.customer_id = p.customer_id AND s.subscription_id = p.subscription_id
    LEFT JOIN billing.invoice AS i ON i.customer_id = p.customer_id AND i.invoice_id = p.invoice_id
    WHERE p.kind = 'BILLED' AND (p_customers IS NULL OR p.customer_id = ANY (p_customers))
      AND (
          i.invoice_id IS NULL OR i.subscription_id IS DISTINCT FROM p.subscription_id
          OR (i.status = 'VOID' AND i.forgiven_by IS NULL AND s.ended_at IS NULL)
      )
    UNION ALL
    SELECT
        'billed_periods', 'BROKEN', x.customer_id, format('subscription %s', x.subscription_id),
        format('invoices for the period from %s: %s', x.period_start, x.invoice_ids)
    FROM (
        SELECT i.customer_id, i.subscription_id, i.period_start, array_agg(i.invoice_id) AS invoice_ids
        FROM billing.invoice AS i
        WHERE i.opens_period AND (i.status <> 'VOID' OR i.forgiven_by IS NOT NULL)
          AND (p_customers IS NULL OR i.customer_id = ANY (p_customers))
        GROUP BY i.customer_id, i.subscription_id, i.period_start
        HAVING count(*) > 1
    ) AS x;
END;
$function$;

COMMENT ON FUNCTION billing.check_billed_periods IS
'A billed period without a live invoice, or two live invoices for overlapping periods: free service, or a double bill.';
