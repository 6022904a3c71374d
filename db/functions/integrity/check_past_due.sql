CREATE OR REPLACE FUNCTION billing.check_past_due(
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
        'past_due', 'BROKEN', s.customer_id, format('subscription %s', s.subscription_id),
        format(
            'status %s, %s open invoices that drive it, %s of them failing, access until %s', s.status, o.owing, o.failing,
            s.access_until
        )
    FROM billing.subscription AS s
    CROSS JOIN LATERAL (
        SELECT count(*) AS owing, count(*) FILTER (WHERE i.failure_count > 0) AS failing
        FROM billing.invoice AS i
        WHERE i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id
          AND i.status = 'OPEN' AND i.drives_status
    ) AS o
    WHERE (
        (s.status = 'PAST_DUE' AND (o.owing = 0 OR s.access_until IS DISTINCT FROM billing.grace_end(s)))
        OR (s.status IN ('TRIALING', 'ACTIVE', 'PAUSED') AND o.failing > 0)
    )
      AND (p_customers IS NULL OR s.customer_id = ANY (p_customers));
END;
$function$;

COMMENT ON FUNCTION billing.check_past_due IS
'PAST_DUE without an open debt, with another end of access than grace gives, or a debt in dunning without PAST_DUE: somebody loses access for nothing, or keeps it.';
