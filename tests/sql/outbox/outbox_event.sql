-- What the table itself refuses, on the default partition and on a day's.
BEGIN;
SELECT plan(19);

SELECT billing_test.outbox_event(64, 1);
SELECT billing_worker.ensure_outbox_partitions(0);
SELECT billing_test.outbox_event(64 * 17 + 3, 2);
SELECT billing_test.outbox_event(64 * 15 + 3, 1, clock_timestamp() - interval '9 days');

SELECT results_eq(
    $$SELECT partition FROM billing.outbox_event ORDER BY outbox_event_id$$, ARRAY[1, 1, 15]::smallint[],
    'the partition follows from the aggregate, whatever the shard in its id'
);
SELECT throws_ok($$DELETE FROM billing.outbox_event$$, 'SB901', NULL, 'no event is deleted');
SELECT throws_ok($$DELETE FROM billing.outbox_event_default$$, 'SB901', NULL, 'not in the default partition either');
SELECT throws_ok($$TRUNCATE billing.outbox_event$$, 'SB901', NULL, 'nothing is truncated');
SELECT throws_ok($$TRUNCATE billing.outbox_event_default$$, 'SB901', NULL, 'not the default partition either');

SELECT throws_ok(
    format($$UPDATE billing.outbox_event SET %I = %I$$, c.name, c.name), 'SB901', NULL,
    format('%s is never written again', c.name)
)
FROM unnest(ARRAY['aggregate_id', 'aggregate_seq', 'event_type', 'occurred_at', 'customer_id', 'payload']) AS c (name);

SELECT lives_ok(
    $$UPDATE billing.outbox_event SET published_at = clock_timestamp() WHERE aggregate_id = 64$$, 'an event is published'
);
SELECT throws_ok(
    $$UPDATE billing.outbox_event SET published_at = NULL WHERE aggregate_id = 64$$, 'SB901', NULL,
    'and stays so'
);

SELECT throws_like(
    format(
        $$INSERT INTO billing.outbox_event (
            aggregate_type, aggregate_id, aggregate_seq, customer_id, event_type, payload, occurred_at
        ) VALUES (%L, %L, %L, 64, %L, %L, now())$$,
        w.aggregate_type, w.aggregate_id, w.aggregate_seq, w.event_type, w.payload
    ),
    '%"' || w.refused_by || '"%', replace(w.refused_by, '_', ' ')
)
FROM (
    VALUES
    ('invoice', 64, 1, 'InvoicePaid', '{}', 'event_is_about_a_known_aggregate'),
    ('subscription', -64, 1, 'InvoicePaid', '{}', 'aggregate_id_is_not_negative'),
    ('subscription', 64, 0, 'InvoicePaid', '{}', 'aggregate_seq_is_positive'),
    ('subscription', 64, 1, 'InvoiceLost', '{}', 'event_type_is_documented'),
    ('subscription', 64, 1, 'InvoicePaid', '[]', 'payload_is_an_object')
) AS w (aggregate_type, aggregate_id, aggregate_seq, event_type, payload, refused_by);

SELECT throws_ok(
    $$SELECT billing_test.run_as('billing_relay', 'UPDATE billing.outbox_event SET published_at = now()')$$,
    '42501', NULL, 'a relay writes through its functions only'
);

SELECT * FROM finish();
ROLLBACK;
