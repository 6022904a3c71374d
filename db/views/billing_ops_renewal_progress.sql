CREATE OR REPLACE VIEW billing_ops.renewal_progress AS
SELECT
    r.billing_run_id,
    r.status,
    r.worker,
    r.due_at_start,
    r.renewed,
    r.ended,
    r.parked,
    r.limit_reached,
    round(
        (r.renewed + r.ended + r.parked)
        / greatest(extract(EPOCH FROM coalesce(r.ended_wall_at, r.last_batch_wall_at) - r.started_wall_at), 1),
        1
    ) AS per_second,
    r.as_of,
    r.started_wall_at,
    r.last_batch_wall_at,
    r.ended_wall_at
FROM billing.billing_run AS r;

COMMENT ON VIEW billing_ops.renewal_progress IS
'Renewal runs, visible while they run: each batch is counted in its own transaction.';
COMMENT ON COLUMN billing_ops.renewal_progress.billing_run_id IS 'Run.';
COMMENT ON COLUMN billing_ops.renewal_progress.status IS
'RUNNING, DONE, or STOPPED because too many renewals were parked.';
COMMENT ON COLUMN billing_ops.renewal_progress.worker IS 'Who runs it.';
COMMENT ON COLUMN billing_ops.renewal_progress.due_at_start IS
'Subscriptions due when it began, counted up to 100,000.';
COMMENT ON COLUMN billing_ops.renewal_progress.renewed IS 'Periods opened so far.';
COMMENT ON COLUMN billing_ops.renewal_progress.ended IS 'Subscriptions cancelled or expired at their boundary so far.';
COMMENT ON COLUMN billing_ops.renewal_progress.parked IS
'Renewals that failed on their data and were set aside so far.';
COMMENT ON COLUMN billing_ops.renewal_progress.limit_reached IS
'Subscriptions that reached three periods in this run and wait for the next one.';
COMMENT ON COLUMN billing_ops.renewal_progress.per_second IS 'Subscriptions per second of wall clock so far.';
COMMENT ON COLUMN billing_ops.renewal_progress.as_of IS 'Business time of its start.';
COMMENT ON COLUMN billing_ops.renewal_progress.started_wall_at IS 'Wall clock of its start.';
COMMENT ON COLUMN billing_ops.renewal_progress.last_batch_wall_at IS 'Wall clock of its last batch.';
COMMENT ON COLUMN billing_ops.renewal_progress.ended_wall_at IS 'Wall clock of its end; NULL while it runs.';
