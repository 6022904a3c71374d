CREATE OR REPLACE FUNCTION billing.note_batch(
    p_run_id bigint,
    p_outcome billing.renewal_outcome
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      billing_run, one row, last in the transaction
    -- Writes:     billing_run
    -- Raises:     nothing
    -- Idempotent: no
    -- More than 20 parked, or more than one in a hundred once a hundred were taken up, is no accident: the run stops.
    UPDATE billing.billing_run AS r
    SET renewed = r.renewed + p_outcome.renewed,
        ended = r.ended + p_outcome.ended,
        parked = r.parked + p_outcome.parked,
        limit_reached = r.limit_reached + p_outcome.limit_reached,
        last_batch_wall_at = clock_timestamp(),
        status = CASE WHEN t.too_many THEN 'STOPPED' ELSE r.status END,
        ended_wall_at = CASE WHEN t.too_many THEN clock_timestamp() END
    FROM (
        SELECT
            x.billing_run_id,
            x.parked + p_outcome.parked > 20
            OR (
                x.renewed + x.ended + x.parked + p_outcome.renewed + p_outcome.ended + p_outcome.parked >= 100
                AND (x.parked + p_outcome.parked) * 100
                > x.renewed + x.ended + x.parked + p_outcome.renewed + p_outcome.ended + p_outcome.parked
            ) AS too_many
        FROM billing.billing_run AS x
        WHERE x.billing_run_id = p_run_id
        FOR NO KEY UPDATE
    ) AS t
    WHERE r.billing_run_id = t.billing_run_id AND r.status = 'RUNNING';
$function$;

COMMENT ON FUNCTION billing.note_batch IS 'Adds a batch to its run, and stops the run where too many renewals were parked.';
