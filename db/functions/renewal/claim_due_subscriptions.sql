CREATE OR REPLACE FUNCTION billing.claim_due_subscriptions(
    p_limit integer,
    p_as_of timestamptz,
    p_shard integer,
    p_shards integer,
    p_run_id bigint
)
RETURNS billing.subscription_key[]
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      subscription, FOR NO KEY UPDATE SKIP LOCKED, oldest hour first and in key order within the hour
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- A statement of its own: what is decided afterwards reads with a fresh snapshot what was locked here.
    SELECT coalesce(
        array_agg(
            ROW(c.customer_id, c.subscription_id)::billing.subscription_key
            ORDER BY c.customer_id, c.subscription_id
        ),
        '{}'
    )
    FROM (
        SELECT s.customer_id, s.subscription_id
        FROM billing.subscription AS s
        WHERE date_bin('1 hour', s.next_renewal_at, '2000-01-01 00:00:00+00') <= p_as_of
          AND s.next_renewal_at <= p_as_of
          AND (p_shards = 1 OR (s.customer_id / 64) % p_shards = p_shard)
          AND (p_run_id IS NULL OR s.catch_up_run_id IS DISTINCT FROM p_run_id OR s.catch_up_periods < 3)
        ORDER BY date_bin('1 hour', s.next_renewal_at, '2000-01-01 00:00:00+00'), s.customer_id, s.subscription_id
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c;
$function$;

COMMENT ON FUNCTION billing.claim_due_subscriptions IS
'Locks up to p_limit due subscriptions and returns their keys in key order. One run takes a subscription at most three times.';
