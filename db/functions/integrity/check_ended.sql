CREATE OR REPLACE FUNCTION billing.check_ended(
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
        'ended', 'BROKEN', s.customer_id, format('subscription %s', s.subscription_id),
        format('ended at %s, but %s', s.ended_at, x.what)
    FROM billing.subscription AS s
    CROSS JOIN LATERAL (
        SELECT format('invoice %s is open', i.invoice_id) AS what
        FROM billing.invoice AS i
        WHERE i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id AND i.status = 'OPEN'
        UNION ALL
        SELECT format('a period ends at %s', p.period_end)
        FROM billing.subscription_period AS p
        WHERE p.customer_id = s.customer_id AND p.subscription_id = s.subscription_id AND p.period_end > s.ended_at
        UNION ALL
        SELECT format('attempt %s was started at %s', a.attempt_id, a.started_at)
        FROM billing.invoice AS i
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
        WHERE i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id AND i.status = 'VOID'
          AND a.started_at > i.voided_at
    ) AS x
    WHERE s.ended_at IS NOT NULL AND (p_customers IS NULL OR s.customer_id = ANY (p_customers));
END;
$function$;

COMMENT ON FUNCTION billing.check_ended IS
'Something goes on after a subscription has ended: an open invoice, a period, a new attempt.';
