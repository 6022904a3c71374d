CREATE OR REPLACE FUNCTION billing_worker.close_abandoned_runs(
    p_limit integer,
    p_idle interval DEFAULT '15 minutes'
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      billing_run (SKIP LOCKED)
-- Writes:     billing_run
-- Raises:     SB101 bad limit or span
-- Idempotent: yes
-- Whoever wakes up in a closed run is refused with SB208, and begins another.
DECLARE
    v_closed integer;
BEGIN
    PERFORM billing.require_limit(p_limit);
    PERFORM billing.require_span(p_idle, 'p_idle', '1 minute', '7 days');
    WITH abandoned AS MATERIALIZED (
        SELECT r.billing_run_id
        FROM billing.billing_run AS r
        WHERE r.status = 'RUNNING' AND r.last_batch_wall_at < clock_timestamp() - p_idle
        ORDER BY r.billing_run_id
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    )

    UPDATE billing.billing_run AS r
    SET status = 'DONE', ended_wall_at = clock_timestamp()
    FROM abandoned AS a
    WHERE r.billing_run_id = a.billing_run_id;
    GET DIAGNOSTICS v_closed = ROW_COUNT;
    RETURN v_closed;
END;
$function$;

COMMENT ON FUNCTION billing_worker.close_abandoned_runs IS
'Closes renewal runs whose worker has not been heard of for so long, and returns how many. What they left undone is due as before.';
