BEGIN;
SELECT plan(7);

SELECT throws_ok($$SELECT billing_worker.drop_outbox_partitions(NULL)$$, 'SB101', NULL, 'NULL is no number of days');
SELECT throws_ok($$SELECT billing_worker.drop_outbox_partitions(0)$$, 'SB101', NULL, 'today stays');

SELECT billing_test.outbox_event(64, d.ago, clock_timestamp() - make_interval(days => d.ago::integer))
FROM generate_series(1, 12) AS d (ago);
SELECT billing_worker.ensure_outbox_partitions(1);
UPDATE billing.outbox_event SET published_at = clock_timestamp() WHERE aggregate_seq <> 11;

SELECT is(billing_worker.drop_outbox_partitions(9), 2, 'days that ended earlier are dropped');
SELECT results_eq(
    $$SELECT aggregate_seq FROM billing.outbox_event ORDER BY 1$$,
    ARRAY[1, 2, 3, 4, 5, 6, 7, 8, 9, 11]::bigint[],
    'but not the day on which an event is unpublished, and none that is to be kept'
);
UPDATE billing.outbox_event
SET blocked_at = clock_timestamp(), publish_failures = 1, last_error = 'too large' WHERE aggregate_seq = 11;
SELECT is(billing_worker.drop_outbox_partitions(9), 0, 'a blocked event keeps its day');
SELECT is(billing_worker.ensure_outbox_partitions(1), 0, 'nothing else has gone');
SELECT lives_ok(
    $$SELECT billing_test.run_as('billing_worker', 'SELECT billing_worker.drop_outbox_partitions(9)')$$,
    'the role of the workers may call it'
);

SELECT * FROM finish();
ROLLBACK;
