CREATE OR REPLACE FUNCTION billing.collection_metrics()
RETURNS SETOF billing.metric
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT f.name, jsonb_build_object('gateway_account', a.code, 'lane', lower(l.lane)), f.value
    FROM billing.gateway_account AS a
    CROSS JOIN (VALUES ('INTERACTIVE'), ('BACKLOG')) AS l (lane)
    CROSS JOIN LATERAL (
        SELECT count(*) AS invoices, min(d.next_attempt_at) AS oldest
        FROM (
            SELECT i.next_attempt_at
            FROM billing.invoice AS i
            WHERE i.status = 'OPEN' AND i.gateway_account_id = a.gateway_account_id AND i.lane = l.lane
              AND i.next_attempt_at <= (SELECT billing.now())
            ORDER BY i.next_attempt_at
            LIMIT 100000
        ) AS d
    ) AS due
    CROSS JOIN LATERAL (VALUES
        ('billing_collection_backlog', due.invoices::numeric),
        ('billing_collection_backlog_age_seconds', coalesce(extract(epoch FROM (SELECT billing.now()) - due.oldest), 0))
    ) AS f (name, value)
    UNION ALL
    SELECT
        'billing_collecting_paused', jsonb_build_object('gateway_account', a.code),
        (a.collecting_paused_at IS NOT NULL)::integer
    FROM billing.gateway_account AS a
    UNION ALL
    SELECT
        'billing_gateway_rate_limit', jsonb_build_object('gateway_account', a.code, 'operation', o.operation),
        coalesce(r.per_second, 200)
    FROM billing.gateway_account AS a
    CROSS JOIN (VALUES ('charge'), ('look_up'), ('refund')) AS o (operation)
    LEFT JOIN billing.gateway_rate AS r
        ON r.gateway_account_id = a.gateway_account_id AND r.operation = o.operation;
$function$;

COMMENT ON FUNCTION billing.collection_metrics IS
'Per gateway account: what is due for collection and since when, whether it is stopped, and how many calls it takes.';
