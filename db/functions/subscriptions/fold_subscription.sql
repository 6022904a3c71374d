CREATE OR REPLACE FUNCTION billing.fold_subscription(
    p_customer_id bigint,
    p_subscription_id bigint
)
RETURNS billing.subscription
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- Each column as the last entry of the log left it that set it; the current period is the last row of the timeline, and
    -- the number of the period counts on by each billed row that was opened since it was last logged.
    SELECT jsonb_populate_record(
        NULL::billing.subscription,
        coalesce(f.row, '{}') || jsonb_build_object(
            'customer_id', p_customer_id,
            'subscription_id', p_subscription_id,
            'status', st.to_status,
            'current_period_kind', p.kind,
            'current_period_start', p.period_start,
            'current_period_end', p.period_end,
            'period_no', (f.row ->> 'period_no')::integer + n.opened,
            'event_seq', greatest(l.last_seq, p.opened_seq, i.opened_seq)
        )
    )
    FROM (
        SELECT jsonb_object_agg(c.key, c.value) AS row
        FROM (
            SELECT DISTINCT ON (x.key) x.key, x.value
            FROM billing.subscription_event AS e
            CROSS JOIN LATERAL jsonb_each(e.row_changes) AS x
            WHERE e.customer_id = p_customer_id AND e.subscription_id = p_subscription_id
            ORDER BY x.key, e.event_seq DESC
        ) AS c
    ) AS f
    LEFT JOIN LATERAL (
        SELECT e.to_status
        FROM billing.subscription_event AS e
        WHERE e.customer_id = p_customer_id AND e.subscription_id = p_subscription_id AND e.to_status IS NOT NULL
        ORDER BY e.event_seq DESC
        LIMIT 1
    ) AS st ON true
    CROSS JOIN LATERAL (
        SELECT
            max(e.event_seq) AS last_seq,
            max(e.event_seq) FILTER (WHERE e.row_changes ? 'period_no') AS numbered_seq
        FROM billing.subscription_event AS e
        WHERE e.customer_id = p_customer_id AND e.subscription_id = p_subscription_id
    ) AS l
    CROSS JOIN LATERAL (
        SELECT count(*)::integer AS opened
        FROM billing.subscription_period AS x
        WHERE x.customer_id = p_customer_id AND x.subscription_id = p_subscription_id
          AND x.kind = 'BILLED' AND x.opened_seq > l.numbered_seq
    ) AS n
    LEFT JOIN LATERAL (
        SELECT x.kind, x.period_start, x.period_end, x.opened_seq
        FROM billing.subscription_period AS x
        WHERE x.customer_id = p_customer_id AND x.subscription_id = p_subscription_id
        ORDER BY x.period_start DESC
        LIMIT 1
    ) AS p ON true
    CROSS JOIN LATERAL (
        SELECT max(x.opened_seq) AS opened_seq
        FROM billing.invoice AS x
        WHERE x.customer_id = p_customer_id AND x.subscription_id = p_subscription_id
    ) AS i;
$function$;

COMMENT ON FUNCTION billing.fold_subscription IS
'The row of a subscription as its log and its timeline give it: all columns but version, next_renewal_at, catch_up_run_id and catch_up_periods, which are NULL.';
