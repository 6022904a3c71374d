-- A run whose worker is dead does not stay open for ever.
BEGIN;
SELECT plan(7);
SELECT billing_test.clock('2027-05-01Z');
CREATE TEMPORARY TABLE run AS
SELECT
    billing_worker.start_renewal_run('dead') AS dead, billing_worker.start_renewal_run('alive') AS alive;
UPDATE billing.billing_run AS r
SET last_batch_wall_at = clock_timestamp() - interval '16 minutes'
WHERE r.worker = 'dead';

SELECT is(billing_worker.close_abandoned_runs(10), 1, 'one run has not been heard of for a quarter of an hour');
SELECT is(
    (SELECT concat_ws(' ', r.status, r.ended_wall_at IS NOT NULL) FROM billing.billing_run AS r WHERE r.worker = 'dead'),
    'DONE t', 'it is closed'
);
SELECT is((SELECT r.status FROM billing.billing_run AS r WHERE r.worker = 'alive'), 'RUNNING', 'the other goes on');
SELECT throws_ok(
    format('SELECT billing_worker.renew_due(10, p_run_id => %s)', (SELECT dead FROM run)), 'SB208', NULL,
    'a worker that was taken for dead is told so'
);
SELECT is(billing_worker.close_abandoned_runs(10), 0, 'then there is nothing to close');
SELECT throws_ok($$SELECT billing_worker.close_abandoned_runs(0)$$, 'SB101', NULL, 'a limit of zero is refused');
SELECT throws_ok(
    $$SELECT billing_worker.close_abandoned_runs(1, '0 seconds')$$, 'SB101', NULL, 'a run is not closed while it runs'
);

SELECT * FROM finish();
ROLLBACK;
