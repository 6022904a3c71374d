CREATE OR REPLACE FUNCTION billing.check_credit_ledger(
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
        'credit_ledger', 'BROKEN', b.customer_id, format('credit in %s', b.currency),
        format('balance %s, ledger %s; last number %s, entries %s', b.balance, e.amount, b.entry_seq, e.entries)
    FROM billing.credit_balance AS b
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(x.amount), 0) AS amount, count(*) AS entries
        FROM billing.credit_entry AS x
        WHERE x.customer_id = b.customer_id AND x.currency = b.currency
    ) AS e
    WHERE (b.balance <> e.amount OR b.entry_seq <> e.entries) AND (p_customers IS NULL OR b.customer_id = ANY (p_customers))
    UNION ALL
    SELECT
        'credit_ledger', 'BROKEN', x.customer_id, format('credit in %s', x.currency),
        format('entry %s says %s, the sum is %s', x.entry_seq, x.balance_after, x.running)
    FROM (
        SELECT
            e.customer_id, e.currency, e.entry_seq, e.balance_after,
            sum(e.amount) OVER (PARTITION BY e.customer_id, e.currency ORDER BY e.entry_seq) AS running
        FROM billing.credit_entry AS e
        WHERE (p_customers IS NULL OR e.customer_id = ANY (p_customers))
    ) AS x
    WHERE x.balance_after <> x.running;
END;
$function$;

COMMENT ON FUNCTION billing.check_credit_ledger IS
'A credit balance is not the sum of its ledger: credit was spent twice or vanished.';
