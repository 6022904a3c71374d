BEGIN;
SELECT plan(20);

-- 32 subscriptions on all 16 partitions, three events each, all first ones before all second.
SELECT count(billing_test.outbox_event(64 * s.no, e.no))
FROM generate_series(1, 3) AS e (no) CROSS JOIN generate_series(1, 32) AS s (no);

SELECT throws_ok($$SELECT billing_worker.lease_outbox(NULL, 10)$$, 'SB101', NULL, 'a relay needs a name');
SELECT throws_ok($$SELECT billing_worker.lease_outbox('two words', 10)$$, 'SB101', NULL, 'its name has no blanks');
SELECT throws_ok($$SELECT billing_worker.lease_outbox(repeat('x', 201), 10)$$, 'SB101', NULL, 'its name is short');
SELECT throws_ok($$SELECT billing_worker.lease_outbox('one', NULL)$$, 'SB101', NULL, 'NULL is no limit');
SELECT throws_ok($$SELECT billing_worker.lease_outbox('one', 0)$$, 'SB101', NULL, 'zero is no limit');
SELECT throws_ok($$SELECT billing_worker.lease_outbox('one', 10001)$$, 'SB101', NULL, 'the limit is at most 10000');
SELECT throws_ok(
    $$SELECT billing_worker.lease_outbox('one', 10, NULL)$$, 'SB104', NULL, 'NULL is no instant'
);
SELECT is_empty($$SELECT relay FROM billing.outbox_relay$$, 'a refused call leaves no trace');

SELECT results_eq(
    $$SELECT aggregate_id, aggregate_seq FROM billing_worker.lease_outbox('one', 40)$$,
    $$SELECT 64::bigint * s.no, e.no::bigint
      FROM generate_series(1, 2) AS e (no) CROSS JOIN generate_series(1, 32) AS s (no)
      WHERE e.no = 1 OR s.no <= 8
      ORDER BY e.no, s.no$$,
    'the oldest events come first, as many as asked for'
);
SELECT set_eq(
    $$SELECT partition, relay, lease_epoch FROM billing.outbox_lease$$,
    $$SELECT p.no::smallint, 'one', 1::bigint FROM generate_series(0, 15) AS p (no)$$,
    'a relay alone holds every partition'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.lease_outbox('one', 1000)), 96::bigint,
    'what is not confirmed is returned again'
);
SELECT results_eq(
    $$SELECT DISTINCT lease_epoch FROM billing_worker.lease_outbox('one', 1000)$$, ARRAY[1::bigint],
    'keeping a partition keeps its epoch'
);

SELECT is_empty($$SELECT * FROM billing_worker.lease_outbox('two', 1000)$$, 'a second relay waits for the first one');
SELECT results_eq(
    $$SELECT DISTINCT partition FROM billing_worker.lease_outbox('one', 1000) ORDER BY 1$$,
    $$SELECT p.no::smallint FROM generate_series(0, 7) AS p (no)$$,
    'the first one gives back half'
);
SELECT results_eq(
    $$SELECT DISTINCT partition, lease_epoch FROM billing_worker.lease_outbox('two', 1000) ORDER BY 1$$,
    $$SELECT p.no::smallint, 2::bigint FROM generate_series(8, 15) AS p (no)$$,
    'the second one takes that half under a new epoch'
);

UPDATE billing.outbox_relay SET seen_at = seen_at - interval '31 seconds' WHERE relay = 'one';
UPDATE billing.outbox_lease SET leased_until = clock_timestamp() WHERE relay = 'one';
SELECT is(
    (SELECT count(*) FROM billing_worker.lease_outbox('two', 1000)), 96::bigint,
    'partitions of a relay that was silent for 30 seconds go to the other'
);

UPDATE billing.outbox_event
SET publish_failures = 1, last_error = 'refused', retry_at = clock_timestamp() + interval '1 minute'
WHERE aggregate_id = 64 AND aggregate_seq = 1;
UPDATE billing.outbox_event
SET publish_failures = 1, last_error = 'refused', blocked_at = clock_timestamp()
WHERE aggregate_id = 128 AND aggregate_seq = 2;
SELECT is_empty(
    $$SELECT * FROM billing_worker.lease_outbox('two', 1000) WHERE aggregate_id IN (64, 128)$$,
    'an event to be retried and a blocked one hold back their whole subscription'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.lease_outbox('two', 1000)), 90::bigint, 'all others go on'
);
UPDATE billing.outbox_event SET retry_at = clock_timestamp() WHERE aggregate_id = 64 AND aggregate_seq = 1;
SELECT results_eq(
    $$SELECT aggregate_seq FROM billing_worker.lease_outbox('two', 1000) WHERE aggregate_id = 64$$,
    ARRAY[1, 2, 3]::bigint[],
    'once its time has come it is offered again, with what follows'
);

SELECT lives_ok(
    $$SELECT billing_test.run_as('billing_relay', 'SELECT billing_worker.lease_outbox(''three'', 10)')$$,
    'the role of the relay may call it'
);

SELECT * FROM finish();
ROLLBACK;
