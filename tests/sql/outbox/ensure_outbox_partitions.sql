BEGIN;
SELECT plan(10);

SELECT throws_ok($$SELECT billing_worker.ensure_outbox_partitions(NULL)$$, 'SB101', NULL, 'NULL is no number of days');
SELECT throws_ok($$SELECT billing_worker.ensure_outbox_partitions(-1)$$, 'SB101', NULL, 'days are not negative');
SELECT throws_ok($$SELECT billing_worker.ensure_outbox_partitions(367)$$, 'SB101', NULL, 'a year ahead is enough');

-- Two days that have no partition, the second one today.
SELECT billing_test.outbox_event(64, 1, clock_timestamp() - interval '3 days');
SELECT billing_test.outbox_event(64, 2);
SELECT is(
    (SELECT count(*) FROM billing.outbox_event_default), 2::bigint, 'without its partition an event is kept all the same'
);
CREATE TEMPORARY TABLE kept AS SELECT * FROM billing.outbox_event;

SELECT is(billing_worker.ensure_outbox_partitions(2), 4, 'today, two days ahead, and the day that was missing');
SELECT is(billing_worker.ensure_outbox_partitions(2), 0, 'a second time there is nothing to do');
SELECT is_empty($$SELECT * FROM billing.outbox_event_default$$, 'events have moved to their days');
SELECT set_eq($$SELECT * FROM billing.outbox_event$$, $$SELECT * FROM kept$$, 'unchanged');
SELECT throws_ok(
    $$DELETE FROM billing.outbox_event$$, 'SB901', NULL, 'and may still not be deleted'
);
SELECT throws_ok(
    format(
        $$TRUNCATE billing.%I$$, billing.outbox_partition_name((clock_timestamp() AT TIME ZONE 'UTC')::date)
    ),
    'SB901', NULL, 'a day may not be truncated either'
);

SELECT * FROM finish();
ROLLBACK;
