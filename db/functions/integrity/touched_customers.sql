CREATE OR REPLACE FUNCTION billing.touched_customers(
    p_since timestamptz
)
RETURNS bigint[]
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- Whatever changes what is owed, paid or served writes an event in the same transaction; what a gateway has not
    -- answered yet has an open attempt.
    SELECT coalesce(array_agg(t.customer_id ORDER BY t.customer_id), '{}')
    FROM (
        SELECT o.customer_id
        FROM billing.outbox_event AS o
        WHERE o.created_at >= p_since
        UNION
        SELECT a.customer_id
        FROM billing.payment_attempt AS a
        WHERE a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
        UNION
        SELECT f.customer_id
        FROM billing.refund AS f
        WHERE f.ended_at IS NULL
    ) AS t;
$function$;

COMMENT ON FUNCTION billing.touched_customers IS
'Customers about whom an event was written since an instant of the wall clock, and those with an open attempt.';
