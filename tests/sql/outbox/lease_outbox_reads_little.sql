-- However many events are stored, published or waiting, and whatever the planner believes.
BEGIN;
SELECT plan(6);

SELECT billing_worker.ensure_outbox_partitions(30);
INSERT INTO billing.outbox_event (
    aggregate_type, aggregate_id, aggregate_seq, customer_id, event_type, payload, occurred_at, published_at
)
SELECT
    'subscription' AS aggregate_type,
    64 * s.no AS aggregate_id,
    e.no AS aggregate_seq,
    64 * s.no AS customer_id,
    'InvoiceOpened' AS event_type,
    '{}' AS payload,
    '2027-01-31T10:30:00Z' AS occurred_at,
    CASE WHEN e.no <= 50 THEN '2027-01-31T10:30:00Z'::timestamptz END AS published_at
FROM generate_series(1, 200) AS e (no) CROSS JOIN generate_series(1, 200) AS s (no)
ORDER BY e.no, s.no;

CREATE TEMPORARY VIEW read AS
SELECT sum(t.seq_tup_read) AS by_scan, sum(t.idx_tup_fetch) AS by_index
FROM pg_stat_xact_user_tables AS t
WHERE t.schemaname = 'billing' AND t.relname LIKE 'outbox\_event%';
CREATE TEMPORARY TABLE before (mode text, by_scan numeric, by_index numeric);

SET LOCAL plan_cache_mode = force_custom_plan;
INSERT INTO before SELECT 'custom' AS mode, r.by_scan, r.by_index FROM read AS r;
SELECT is((SELECT count(*) FROM billing_worker.lease_outbox('one', 100)), 100::bigint, 'custom plan: a hundred events');
SELECT is(
    (SELECT r.by_scan - b.by_scan FROM read AS r, before AS b WHERE b.mode = 'custom'), 0::numeric,
    'custom plan: nothing is read by scanning'
);
SELECT cmp_ok(
    (SELECT r.by_index - b.by_index FROM read AS r, before AS b WHERE b.mode = 'custom'), '<=', 200::numeric,
    'custom plan: hardly more is read than returned'
);

SET LOCAL plan_cache_mode = force_generic_plan;
INSERT INTO before SELECT 'generic' AS mode, r.by_scan, r.by_index FROM read AS r;
SELECT is((SELECT count(*) FROM billing_worker.lease_outbox('one', 100)), 100::bigint, 'generic plan: a hundred events');
SELECT is(
    (SELECT r.by_scan - b.by_scan FROM read AS r, before AS b WHERE b.mode = 'generic'), 0::numeric,
    'generic plan: nothing is read by scanning'
);
SELECT cmp_ok(
    (SELECT r.by_index - b.by_index FROM read AS r, before AS b WHERE b.mode = 'generic'), '<=', 200::numeric,
    'generic plan: hardly more is read than returned'
);

SELECT * FROM finish();
ROLLBACK;
