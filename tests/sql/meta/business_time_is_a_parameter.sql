-- Whoever reads a clock decides at a time that no test and no replay can choose. Business time is p_as_of; the wall
-- clock is for leases, Retry-After, and the retries of webhooks and outbox.
BEGIN;
SELECT plan(3);

CREATE TEMPORARY TABLE may_read_the_wall_clock (name text PRIMARY KEY, reason text NOT NULL);
INSERT INTO may_read_the_wall_clock VALUES
('billing.now', 'it is the business clock'),
('billing.throw_switch', 'operator_switch tells people since when'),
('billing.note_batch', 'billing_run tells people when it ran'),
('billing_worker.finish_renewal_run', 'billing_run tells people when it ran'),
('billing_worker.close_abandoned_runs', 'billing_run tells people when it ran'),
('billing_worker.ensure_outbox_partitions', 'partitions are days of writing'),
('billing_worker.drop_outbox_partitions', 'partitions are days of writing'),
('billing.send_attempts', 'leases'),
('billing.doubt_lapsed_attempts', 'leases'),
('billing.triage_invoices', 'leases'),
('billing.resolve_without_call', 'holds, as of Retry-After'),
('billing_worker.attempts_to_look_up', 'leases'),
('billing.close_webhooks', 'retries of webhooks'),
('billing.process_refund_webhooks', 'retries of webhooks'),
('billing.decide_attempt', 'leases'),
('billing.decide_refund', 'leases'),
('billing.doubt_lapsed_refunds', 'leases'),
('billing_worker.start_refunds', 'leases and Retry-After'),
('billing_worker.refunds_to_look_up', 'leases'),
('billing_worker.count_due_refunds', 'leases and Retry-After'),
('billing.update_refunds', 'Retry-After'),
('billing_worker.process_webhooks', 'retries of webhooks'),
('billing.claim_due_invoices', 'Retry-After'),
('billing_worker.count_due_invoices', 'Retry-After'),
('billing.reschedule_invoices', 'Retry-After'),
('billing.take_outbox_leases', 'leases'),
('billing_worker.lease_outbox', 'leases and retries of the outbox'),
('billing_worker.confirm_outbox', 'leases and retries of the outbox'),
('billing_ops.replay_event', 'retries of the outbox'),
('billing_ops.create_api_key', 'keys end by the wall clock'),
('billing_ops.rotate_api_key', 'keys end by the wall clock'),
('billing_ops.revoke_api_key', 'keys end by the wall clock'),
('billing_worker.authenticate_api_key', 'keys end by the wall clock'),
('billing.check_stuck', 'leases, and the retries of webhooks'),
('billing.renewal_metrics', 'billing_run tells people when it ran'),
('billing.attempt_metrics', 'leases'),
('billing.outbox_metrics', 'leases, and the lag of the outbox');

-- Bodies without comments and texts. billing.now() is the business clock itself.
CREATE TEMPORARY VIEW reads_a_clock AS
SELECT n.nspname || '.' || f.proname AS name, found.call[1] AS call
FROM pg_proc AS f
INNER JOIN pg_namespace AS n ON f.pronamespace = n.oid
CROSS JOIN LATERAL regexp_replace(
    coalesce(nullif(f.prosrc, ''), pg_get_functiondef(f.oid)), '--[^\n]*|/\*.*?\*/|''[^'']*''', ' ', 'g'
) AS stripped (body)
CROSS JOIN LATERAL regexp_matches(
    stripped.body,
    '(?<![a-z0-9_.]|billing\.)((?:pg_catalog\.)?(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)'
    || '\s*\(\s*\)|current_timestamp|current_date|current_time|localtimestamp|localtime)(?![a-z0-9_])',
    'gi'
) AS found (call)
WHERE n.nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops') AND f.prokind <> 'a';

SELECT is_empty($$
    SELECT DISTINCT name, call FROM reads_a_clock WHERE name NOT IN (SELECT name FROM may_read_the_wall_clock)
$$, 'no function reads a clock without a reason in this list');

SELECT is_empty($$
    SELECT name FROM may_read_the_wall_clock WHERE name NOT IN (SELECT name FROM reads_a_clock)
$$, 'the list has nobody on it who reads no clock');

SELECT is_empty($$
    SELECT f.oid::regprocedure
    FROM pg_proc AS f
    INNER JOIN pg_namespace AS n ON f.pronamespace = n.oid
    WHERE n.nspname IN ('billing_api', 'billing_worker', 'billing_ops')
      AND 'p_as_of' = ANY (f.proargnames)
      AND pg_get_function_arguments(f.oid) !~ 'p_as_of timestamp with time zone DEFAULT billing\.now\(\)'
$$, 'p_as_of is the business clock unless the caller says otherwise');

SELECT * FROM finish();
ROLLBACK;
