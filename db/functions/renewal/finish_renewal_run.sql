CREATE OR REPLACE FUNCTION billing_worker.finish_renewal_run(
    p_run_id bigint
)
RETURNS SETOF billing.billing_run
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      billing_run, one row
-- Writes:     billing_run
-- Raises:     SB208 no such run
-- Idempotent: yes
BEGIN
    PERFORM 1 FROM billing.billing_run AS r WHERE r.billing_run_id = p_run_id FOR NO KEY UPDATE;
    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB208',
            MESSAGE = format('renewal run %s does not exist', p_run_id);
    END IF;
    -- Runs come every few seconds; one that found nothing to do tells nobody anything.
    DELETE FROM billing.billing_run AS r
    WHERE r.billing_run_id = p_run_id AND r.renewed + r.ended + r.parked = 0 AND r.due_at_start = 0;

    UPDATE billing.billing_run AS r
    SET status = 'DONE', ended_wall_at = clock_timestamp()
    WHERE r.billing_run_id = p_run_id AND r.status = 'RUNNING';

    RETURN QUERY SELECT r.* FROM billing.billing_run AS r WHERE r.billing_run_id = p_run_id;
END;
$function$;

COMMENT ON FUNCTION billing_worker.finish_renewal_run IS
'Closes a renewal run and returns it; no row where it found nothing to do and was removed.';
