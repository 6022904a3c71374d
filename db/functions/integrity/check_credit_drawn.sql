CREATE OR REPLACE FUNCTION billing.check_credit_drawn(
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
        'credit_drawn', 'BROKEN', i.customer_id, format('invoice %s', i.invoice_id),
        format('applied %s, ledger %s', i.credit_applied, e.amount)
    FROM billing.invoice AS i
    CROSS JOIN LATERAL (
        SELECT coalesce(-sum(x.amount), 0) AS amount
        FROM billing.credit_entry AS x
        WHERE x.customer_id = i.customer_id AND x.invoice_id = i.invoice_id AND x.kind IN ('DRAWN', 'RETURNED')
    ) AS e
    WHERE i.credit_applied <> e.amount AND (p_customers IS NULL OR i.customer_id = ANY (p_customers));
END;
$function$;

COMMENT ON FUNCTION billing.check_credit_drawn IS
'What an invoice says it took from credit is not what the ledger gave it.';
