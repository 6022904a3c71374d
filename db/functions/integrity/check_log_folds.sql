CREATE OR REPLACE FUNCTION billing.check_log_folds(
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
-- Status, current period and event number have checks of their own.
BEGIN
    RETURN QUERY
    SELECT
        'log_folds', 'BROKEN', s.customer_id, format('subscription %s', s.subscription_id),
        format('%s: row %s, log %s', d.column_name, d.is_value, d.folded_value)
    FROM billing.subscription AS s
    -- OFFSET 0: made into JSON once a row, not once a column.
    CROSS JOIN LATERAL (
        SELECT to_jsonb(l) AS folded
        FROM billing.fold_subscription(s.customer_id, s.subscription_id) AS l
        OFFSET 0
    ) AS f
    CROSS JOIN LATERAL (
        SELECT r.key AS column_name, r.value AS is_value, f.folded -> r.key AS folded_value
        FROM jsonb_each(billing.logged_row(s) - 'status') AS r
        WHERE r.value IS DISTINCT FROM f.folded -> r.key
    ) AS d
    WHERE p_customers IS NULL OR s.customer_id = ANY (p_customers);
END;
$function$;

COMMENT ON FUNCTION billing.check_log_folds IS
'Log and timeline, folded, give another row than the one that is there: something changed that the log does not explain.';
