CREATE OR REPLACE FUNCTION billing.check_given_back(
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
-- Per invoice of a period and the changes based on it. What a change of interval or a renewal took over from the period
-- counts as paid there and no longer here.
BEGIN
    RETURN QUERY
    SELECT
        'given_back', 'BROKEN', g.customer_id, format('invoice %s', g.base_invoice_id),
        format('given as credit or refunded %s, paid %s', g.amount, paid.amount + brought.amount + moved.amount)
    FROM (
        SELECT y.customer_id, coalesce(i.base_invoice_id, i.invoice_id) AS base_invoice_id, sum(y.amount) AS amount
        FROM (
            SELECT e.customer_id, e.invoice_id, e.amount
            FROM billing.credit_entry AS e
            WHERE e.kind = 'UNUSED_TIME'
            UNION ALL
            SELECT f.customer_id, f.invoice_id, f.amount
            FROM billing.refund AS f
            WHERE f.status <> 'FAILED' AND f.purpose <> 'LATE_PAYMENT'
        ) AS y
        INNER JOIN billing.invoice AS i ON i.customer_id = y.customer_id AND i.invoice_id = y.invoice_id
        WHERE (p_customers IS NULL OR y.customer_id = ANY (p_customers))
        GROUP BY y.customer_id, coalesce(i.base_invoice_id, i.invoice_id)
    ) AS g
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(x.amount_paid + x.credit_applied), 0) AS amount
        FROM billing.invoice AS x
        WHERE x.customer_id = g.customer_id
          AND (x.invoice_id = g.base_invoice_id OR x.base_invoice_id = g.base_invoice_id)
    ) AS paid
    CROSS JOIN LATERAL (
        SELECT greatest(-coalesce(sum(l.amount), 0), 0) AS amount
        FROM billing.invoice AS x
        INNER JOIN billing.invoice_line AS l ON l.customer_id = x.customer_id AND l.invoice_id = x.invoice_id
        WHERE x.customer_id = g.customer_id
          AND (x.invoice_id = g.base_invoice_id OR x.base_invoice_id = g.base_invoice_id)
          AND l.base_invoice_id <> g.base_invoice_id
    ) AS brought
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(l.amount), 0) AS amount
        FROM billing.invoice_line AS l
        INNER JOIN billing.invoice AS x ON x.customer_id = l.customer_id AND x.invoice_id = l.invoice_id
        WHERE l.customer_id = g.customer_id AND l.base_invoice_id = g.base_invoice_id
          AND coalesce(x.base_invoice_id, x.invoice_id) <> g.base_invoice_id
          AND x.status = 'PAID'
    ) AS moved
    WHERE g.amount > paid.amount + brought.amount + moved.amount;
END;
$function$;

COMMENT ON FUNCTION billing.check_given_back IS
'More was given as credit for unused time and refunded than was paid for a period: money came from nothing.';
