CREATE OR REPLACE FUNCTION billing_worker.drop_webhook_payloads(
    p_limit integer,
    p_keep_days integer DEFAULT 45,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      webhook_event (SKIP LOCKED)
-- Writes:     webhook_event
-- Raises:     SB101 bad limit or number of days, SB104 p_as_of
-- Idempotent: yes
-- The row stays: it is what makes a repeated delivery a duplicate. One that still waits keeps its payload.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_dropped integer;
BEGIN
    PERFORM billing.require_limit(p_limit);
    PERFORM billing.require_integer(p_keep_days, 'p_keep_days', 1, 3660);
    WITH old AS MATERIALIZED (
        SELECT w.webhook_event_id
        FROM billing.webhook_event AS w
        WHERE w.payload IS NOT NULL
          AND w.received_at < v_as_of - make_interval(days => p_keep_days)
          AND w.status NOT IN ('RECEIVED', 'UNMATCHED')
        ORDER BY w.received_at
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    )

    UPDATE billing.webhook_event AS w
    SET payload = NULL
    FROM old AS o
    WHERE w.webhook_event_id = o.webhook_event_id;
    GET DIAGNOSTICS v_dropped = ROW_COUNT;
    RETURN v_dropped;
END;
$function$;

COMMENT ON FUNCTION billing_worker.drop_webhook_payloads IS
'Drops what gateways sent in webhooks received more than so many days ago, at most p_limit a call, and returns how many. The events themselves stay.';
