BEGIN;
SELECT plan(25);

SELECT throws_ok($$SELECT billing_worker.confirm_outbox(NULL, '{}')$$, 'SB101', NULL, 'a relay needs a name');
SELECT throws_ok($$SELECT billing_worker.confirm_outbox('one', NULL)$$, 'SB101', NULL, 'NULL is no batch');
SELECT throws_ok(
    $$SELECT billing_worker.confirm_outbox(
        'one', array_fill(ROW(1, now(), 1, 0, 1, 'PUBLISHED', NULL)::billing.outbox_result, ARRAY[10001])
    )$$,
    'SB101', NULL, 'a batch has at most 10000 results'
);
SELECT throws_ok(
    $$SELECT billing_worker.confirm_outbox('one', ARRAY[NULL::billing.outbox_result])$$, 'SB101', NULL,
    'NULL is no result'
);
SELECT throws_ok(
    $$SELECT billing_worker.confirm_outbox('one', ARRAY[ROW(1, now(), 1, 0, 1, 'DONE', NULL)::billing.outbox_result])$$,
    'SB101', NULL, 'an unknown outcome is refused'
);
SELECT throws_ok(
    $$SELECT billing_worker.confirm_outbox('one', ARRAY[ROW(1, now(), 1, 0, 1, 'FAILED', NULL)::billing.outbox_result])$$,
    'SB101', NULL, 'a failure says why'
);
SELECT is(billing_worker.confirm_outbox('one', '{}'), 0, 'an empty batch marks nothing');

SELECT billing_test.outbox_event(64, 1);
SELECT billing_test.outbox_event(64, 2);
SELECT billing_test.outbox_event(128, 1);

CREATE TEMPORARY TABLE held AS SELECT billing_test.outbox_results('one') AS results;

SELECT is(
    billing_worker.confirm_outbox('two', (SELECT results FROM held)), 0, 'who holds no lease marks nothing'
);
SELECT is(
    billing_worker.confirm_outbox(
        'one',
        (SELECT array_agg(
            ROW(r.outbox_event_id, r.created_at, r.customer_id, r.partition, r.lease_epoch - 1, r.outcome, r.error)
            ::billing.outbox_result
        ) FROM held AS h CROSS JOIN unnest(h.results) AS r)
    ),
    0, 'an earlier epoch marks nothing'
);
SELECT is(
    billing_worker.confirm_outbox(
        'one',
        (SELECT array_agg(
            ROW(r.outbox_event_id, r.created_at, r.customer_id, 5, r.lease_epoch, r.outcome, r.error)
            ::billing.outbox_result
        ) FROM held AS h CROSS JOIN unnest(h.results) AS r)
    ),
    0, 'the lease of another partition marks nothing'
);
UPDATE billing.outbox_lease SET leased_until = clock_timestamp() - interval '1 second';
SELECT is(billing_worker.confirm_outbox('one', (SELECT results FROM held)), 0, 'a lapsed lease marks nothing');
SELECT is_empty(
    $$SELECT outbox_event_id FROM billing.outbox_event WHERE published_at IS NOT NULL OR publish_failures > 0$$,
    'nothing has changed so far'
);

UPDATE billing.outbox_lease SET leased_until = clock_timestamp() + interval '30 seconds';
SELECT is(billing_worker.confirm_outbox('one', (SELECT results FROM held)), 3, 'the holder of the lease marks all');
SELECT is(billing_worker.confirm_outbox('one', (SELECT results FROM held)), 0, 'a second time there is nothing to mark');
SELECT is_empty(
    $$SELECT outbox_event_id FROM billing.outbox_event WHERE published_at IS NULL$$, 'all are published'
);

-- An event that is refused again and again.
SELECT billing_test.outbox_event(64, 3);
CREATE TEMPORARY TABLE told AS SELECT clock_timestamp() AS since;
CREATE FUNCTION pg_temp.waits(p_retry_at timestamptz, p_wait interval)
RETURNS boolean
LANGUAGE sql
AS $function$
    -- From some instant since the answer was told: however long that took.
    SELECT p_retry_at BETWEEN t.since + p_wait AND clock_timestamp() + p_wait FROM told AS t;
$function$;
SELECT billing_worker.confirm_outbox('one', billing_test.outbox_results('one', 'FAILED', 'first refusal'));
SELECT results_eq(
    $$SELECT publish_failures, last_error, blocked_at IS NULL, pg_temp.waits(retry_at, '1 second')
      FROM billing.outbox_event WHERE aggregate_seq = 3$$,
    $$VALUES (1, 'first refusal', true, true)$$,
    'a refused event is tried again after a second'
);
UPDATE billing.outbox_event SET retry_at = clock_timestamp(), publish_failures = 6 WHERE aggregate_seq = 3;
UPDATE told SET since = clock_timestamp();
SELECT billing_worker.confirm_outbox('one', billing_test.outbox_results('one', 'FAILED', 'seventh refusal'));
SELECT results_eq(
    $$SELECT publish_failures, last_error, blocked_at IS NULL, pg_temp.waits(retry_at, '1 minute')
      FROM billing.outbox_event WHERE aggregate_seq = 3$$,
    $$VALUES (7, 'seventh refusal', true, true)$$,
    'it never waits longer than a minute'
);
UPDATE billing.outbox_event SET retry_at = clock_timestamp() WHERE aggregate_seq = 3;
SELECT billing_worker.confirm_outbox('one', billing_test.outbox_results('one', 'FAILED', repeat('x', 1000)));
SELECT results_eq(
    $$SELECT publish_failures, length(last_error), blocked_at IS NULL, retry_at
      FROM billing.outbox_event WHERE aggregate_seq = 3$$,
    $$VALUES (8, 500, false, NULL::timestamptz)$$,
    'the eighth refusal blocks it'
);
SELECT is_empty($$SELECT * FROM billing_worker.lease_outbox('one', 10)$$, 'a blocked event is not offered');

-- An event that would be refused for ever.
SELECT billing_test.outbox_event(128, 2);
SELECT billing_worker.confirm_outbox('one', billing_test.outbox_results('one', 'REJECTED', 'too large'));
SELECT results_eq(
    $$SELECT publish_failures, last_error, blocked_at IS NULL, retry_at
      FROM billing.outbox_event WHERE aggregate_id = 128 AND aggregate_seq = 2$$,
    $$VALUES (1, 'too large', false, NULL::timestamptz)$$,
    'a rejected event is blocked at once'
);

-- Reported twice in one batch.
SELECT billing_test.outbox_event(192, 1);
CREATE TEMPORARY TABLE once AS SELECT billing_test.outbox_results('one', 'REJECTED', 'too large') AS results;
SELECT is(
    billing_worker.confirm_outbox('one', (SELECT results FROM once) || billing_test.outbox_results('one')), 1,
    'an acknowledgement outweighs a refusal in the same batch'
);
SELECT results_eq(
    $$SELECT publish_failures, blocked_at FROM billing.outbox_event WHERE aggregate_id = 192$$,
    $$VALUES (0, NULL::timestamptz)$$,
    'and the refusal does not count'
);
SELECT is(
    billing_worker.confirm_outbox('one', (SELECT results FROM once)), 0, 'a late refusal is ignored'
);
SELECT results_eq(
    $$SELECT publish_failures, published_at IS NULL FROM billing.outbox_event WHERE aggregate_id = 192$$,
    $$VALUES (0, false)$$,
    'what is published stays published'
);

SELECT lives_ok(
    $$SELECT billing_test.run_as('billing_relay', 'SELECT billing_worker.confirm_outbox(''one'', ''{}'')')$$,
    'the role of the relay may call it'
);

SELECT * FROM finish();
ROLLBACK;
