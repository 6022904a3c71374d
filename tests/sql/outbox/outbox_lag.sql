BEGIN;
SELECT plan(4);

SELECT is(
    (SELECT count(*) FROM billing_ops.outbox_lag WHERE unpublished = 0 AND relay IS NULL AND lag IS NULL), 16::bigint,
    'without events there is no lag'
);
SELECT billing_test.outbox_event(64, 1, clock_timestamp() - interval '1 hour');
SELECT billing_test.outbox_event(64, 2);
SELECT billing_worker.lease_outbox('one', 10);
SELECT results_eq(
    $$SELECT partition, relay, unpublished, blocked, to_be_retried, date_trunc('hour', lag) = '1 hour'
      FROM billing_ops.outbox_lag WHERE unpublished > 0$$,
    $$VALUES (1::smallint, 'one', 2::bigint, 0::bigint, 0::bigint, true)$$,
    'the lag of a partition is the age of its oldest unpublished event'
);
UPDATE billing.outbox_event
SET blocked_at = clock_timestamp(), publish_failures = 1, last_error = 'too large' WHERE aggregate_seq = 1;
SELECT results_eq(
    $$SELECT aggregate_id, aggregate_seq, last_error, payload_bytes, held_back FROM billing_ops.blocked_event$$,
    $$VALUES (64::bigint, 1::bigint, 'too large', 10, 1::bigint)$$,
    'a blocked event is shown with what waits behind it'
);
SELECT lives_ok(
    $$SELECT billing_test.run_as('billing_readonly', 'SELECT * FROM billing_ops.outbox_lag, billing_ops.blocked_event')$$,
    'who only looks may see both'
);

SELECT * FROM finish();
ROLLBACK;
