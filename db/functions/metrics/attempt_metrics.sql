CREATE OR REPLACE FUNCTION billing.attempt_metrics()
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
    SELECT 'billing_attempts_in_flight' AS name, '{}'::jsonb AS labels, count(*)::numeric AS value
    FROM billing.payment_attempt AS t
    WHERE t.lease_until > clock_timestamp()
    UNION ALL
    SELECT 'billing_attempts_open', jsonb_build_object('status', s.status), count(t.attempt_id)
    FROM (VALUES ('STARTED'), ('UNKNOWN'), ('REQUIRES_ACTION'), ('PROCESSING')) AS s (status)
    LEFT JOIN billing.payment_attempt AS t
        ON t.status = s.status AND t.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
    GROUP BY s.status
    UNION ALL
    SELECT 'billing_attempts_newest', jsonb_build_object('status', s.status), count(newest.status)
    FROM (VALUES
        ('STARTED'), ('UNKNOWN'), ('REQUIRES_ACTION'), ('PROCESSING'), ('SUCCEEDED'), ('DECLINED'), ('ABANDONED')
    ) AS s (status)
    LEFT JOIN (
        SELECT t.status
        FROM billing.payment_attempt AS t
        ORDER BY t.attempt_id DESC
        LIMIT 20000
    ) AS newest ON newest.status = s.status
    GROUP BY s.status;
$function$;

COMMENT ON FUNCTION billing.attempt_metrics IS
'Payment attempts: in the hands of a worker, open by status, and what became of the newest 20,000.';
