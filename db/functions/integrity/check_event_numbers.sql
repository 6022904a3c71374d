CREATE OR REPLACE FUNCTION billing.check_event_numbers(
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
        'event_numbers', 'BROKEN', s.customer_id, format('subscription %s', s.subscription_id),
        format('event_seq %s, numbers known %s, last %s', s.event_seq, n.known, n.last_seq)
    FROM billing.subscription AS s
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT x.seq) AS known, coalesce(max(x.seq), 0) AS last_seq
        FROM (
            SELECT e.event_seq AS seq
            FROM billing.subscription_event AS e
            WHERE e.customer_id = s.customer_id AND e.subscription_id = s.subscription_id
            UNION ALL
            SELECT p.opened_seq
            FROM billing.subscription_period AS p
            WHERE p.customer_id = s.customer_id AND p.subscription_id = s.subscription_id
            UNION ALL
            SELECT i.opened_seq
            FROM billing.invoice AS i
            WHERE i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id AND i.opened_seq IS NOT NULL
        ) AS x
    ) AS n
    WHERE (n.known <> s.event_seq OR n.last_seq <> s.event_seq) AND (p_customers IS NULL OR s.customer_id = ANY (p_customers));
END;
$function$;

COMMENT ON FUNCTION billing.check_event_numbers IS
'The history of a subscription has a hole or ends elsewhere than the row says: something happened that cannot be explained.';
