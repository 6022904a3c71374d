-- A run is visible while it runs, and stops where too much is parked: more than 20, or more than one in a hundred.
BEGIN;
SELECT plan(15);

SELECT billing_test.renewal_invoice();
CREATE TEMPORARY TABLE run AS SELECT billing_worker.start_renewal_run('worker 1', '2027-06-01T00:00:00Z') AS id;
SELECT row_eq(
    $$SELECT r.status, r.worker, r.as_of, r.due_at_start, r.renewed, r.ended_wall_at FROM billing.billing_run AS r$$,
    ROW('RUNNING'::text, 'worker 1'::text, '2027-06-01Z'::timestamptz, 1::bigint, 0::bigint, NULL::timestamptz),
    'a run knows how much was due when it began'
);

CREATE FUNCTION pg_temp.note(p_renewed integer, p_ended integer, p_parked integer)
RETURNS text
LANGUAGE plpgsql
AS $function$
-- What a run says after one batch.
DECLARE
    v_id bigint := billing_worker.start_renewal_run('test', '2027-01-01T00:00:00Z');
BEGIN
    PERFORM billing.note_batch(v_id, ROW(p_renewed, p_ended, p_parked, 0)::billing.renewal_outcome);
    RETURN (SELECT r.status FROM billing.billing_run AS r WHERE r.billing_run_id = v_id);
END;
$function$;
SELECT is(pg_temp.note(0, 0, 20), 'RUNNING', '20 parked are bad luck');
SELECT is(pg_temp.note(100000, 0, 21), 'STOPPED', '21 are not, however many were renewed');
SELECT is(pg_temp.note(97, 0, 2), 'RUNNING', '2 of 99 are too few to judge by');
SELECT is(pg_temp.note(98, 0, 2), 'STOPPED', '2 of 100 are more than one in a hundred');
SELECT is(pg_temp.note(99, 0, 1), 'RUNNING', '1 of 100 is not');
SELECT is(pg_temp.note(198, 0, 2), 'RUNNING', 'nor 2 of 200');
SELECT is(pg_temp.note(0, 197, 3), 'STOPPED', 'those that ended count among them');

SELECT billing.note_batch(r.id, ROW(5, 2, 1, 3)::billing.renewal_outcome) FROM run AS r;
SELECT billing.note_batch(r.id, ROW(5, 0, 0, 0)::billing.renewal_outcome) FROM run AS r;
SELECT row_eq(
    $$SELECT b.renewed, b.ended, b.parked, b.limit_reached FROM billing.billing_run AS b INNER JOIN run AS r ON r.id = b.billing_run_id$$,
    ROW(10::bigint, 2::bigint, 1::bigint, 3::bigint), 'batches add up'
);

-- A stopped run takes nothing up, but is no error: the worker ends it.
UPDATE billing.billing_run AS b SET status = 'STOPPED', ended_wall_at = clock_timestamp() FROM run AS r WHERE b.billing_run_id = r.id;
SELECT is(
    (SELECT billing_worker.renew_due(10, '2027-06-01T00:00:00Z', p_run_id => r.id) FROM run AS r), 0, 'a stopped run renews nothing'
);
SELECT billing.note_batch(r.id, ROW(7, 0, 0, 0)::billing.renewal_outcome) FROM run AS r;
SELECT row_eq(
    'SELECT f.status, f.renewed FROM run AS r, billing_worker.finish_renewal_run(r.id) AS f', ROW('STOPPED'::text, 10::bigint),
    'nor does it count any more; finished, it says that it was stopped'
);
CREATE TEMPORARY TABLE next_run AS SELECT billing_worker.start_renewal_run('worker 1', '2027-06-01T00:00:00Z') AS id;
SELECT is(
    (SELECT billing_worker.renew_due(10, '2027-06-01T00:00:00Z', p_run_id => r.id) FROM next_run AS r), 1, 'another run goes on'
);
SELECT is(
    (SELECT f.status FROM next_run AS r, billing_worker.finish_renewal_run(r.id) AS f), 'DONE', 'and is done'
);
SELECT throws_ok(
    format('SELECT billing_worker.renew_due(10, ''2027-06-01Z'', p_run_id => %s)', (SELECT r.id FROM next_run AS r)), 'SB208', NULL,
    'a run that is done takes no batch'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.finish_renewal_run(billing_worker.start_renewal_run('idle', '2027-06-01T00:00:00Z'))), 0::bigint,
    'a run that found nothing due leaves no row'
);

SELECT * FROM finish();
ROLLBACK;
