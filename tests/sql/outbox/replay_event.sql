BEGIN;
SELECT plan(9);

CREATE TEMPORARY TABLE event AS
SELECT
    billing_test.outbox_event(64, 1) AS blocked,
    billing_test.outbox_event(128, 1) AS published,
    billing_test.outbox_event(192, 1) AS waiting;
UPDATE billing.outbox_event
SET blocked_at = clock_timestamp(), publish_failures = 8, last_error = 'too large'
WHERE outbox_event_id = (SELECT blocked FROM event);
UPDATE billing.outbox_event SET published_at = clock_timestamp()
WHERE outbox_event_id = (SELECT published FROM event);

SELECT throws_ok($$SELECT billing_ops.replay_event(NULL)$$, 'SB101', NULL, 'NULL is no event');
SELECT throws_ok($$SELECT billing_ops.replay_event(1)$$, 'SB251', NULL, 'an unknown event is refused');
SELECT throws_ok(
    $$SELECT billing_ops.replay_event(published) FROM event$$, 'SB351', NULL, 'a published event is refused'
);
SELECT throws_ok(
    $$SELECT billing_ops.replay_event(waiting) FROM event$$, 'SB351', NULL, 'an event on its way is refused'
);

SELECT set_config('billing.actor', 'ada', true);
SELECT results_eq(
    $$SELECT r.blocked_at, r.publish_failures, r.last_error, r.replayed_by
      FROM event AS e CROSS JOIN LATERAL billing_ops.replay_event(e.blocked) AS r$$,
    $$VALUES (NULL::timestamptz, 0, 'too large', 'ada')$$,
    'a blocked event goes back to the relays and remembers who sent it there and what the error was'
);
SELECT results_eq(
    $$SELECT aggregate_id FROM billing_worker.lease_outbox('one', 10)$$, ARRAY[64, 192]::bigint[],
    'a relay gets it'
);
SELECT throws_ok(
    $$SELECT billing_ops.replay_event(blocked) FROM event$$, 'SB351', NULL, 'it is replayed once'
);
SELECT throws_ok(
    $$SELECT billing_test.run_as('billing_relay', 'SELECT billing_ops.replay_event(64)')$$, '42501', NULL,
    'a relay may not replay'
);
SELECT throws_ok(
    $$SELECT billing_test.run_as('billing_operator', 'SELECT billing_ops.replay_event(1)')$$, 'SB251', NULL,
    'an operator may'
);

SELECT * FROM finish();
ROLLBACK;
