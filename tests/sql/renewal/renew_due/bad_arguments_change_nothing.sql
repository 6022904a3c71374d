BEGIN;
SELECT plan(18);

SELECT billing_test.renewal_invoice();
SELECT billing_ops.set_clock('2027-06-01T00:00:00Z');

SELECT billing_test.refuses('SELECT billing_worker.renew_due(NULL)', 'SB101', 'no limit is no limit of the caller''s choice');
SELECT billing_test.refuses('SELECT billing_worker.renew_due(0)', 'SB101', 'a limit of 0 is refused');
SELECT billing_test.refuses('SELECT billing_worker.renew_due(-1)', 'SB101', 'a negative limit is refused');
SELECT billing_test.refuses('SELECT billing_worker.renew_due(10001)', 'SB101', 'a limit beyond 10000 is refused');
SELECT billing_test.refuses('SELECT billing_worker.renew_due(10, NULL)', 'SB104', 'p_as_of NULL is refused');
SELECT billing_test.refuses('SELECT billing_worker.renew_due(10, ''infinity'')', 'SB104', 'p_as_of infinity is refused');
SELECT billing_test.refuses('SELECT billing_worker.renew_due(10, p_shard => 1)', 'SB101', 'shard 1 of 1 is refused');
SELECT billing_test.refuses('SELECT billing_worker.renew_due(10, p_shard => NULL)', 'SB101', 'no shard is refused');
SELECT billing_test.refuses('SELECT billing_worker.renew_due(10, p_shards => NULL)', 'SB101', 'no number of shards is refused');
SELECT billing_test.refuses('SELECT billing_worker.renew_due(10, p_run_id => 7)', 'SB208', 'an unknown run is refused');
SELECT billing_test.refuses('SELECT billing_worker.finish_renewal_run(7)', 'SB208', 'nor can it be finished');
SELECT billing_test.refuses('SELECT billing_worker.finish_renewal_run(NULL)', 'SB208', 'nor can no run at all');
SELECT billing_test.refuses('SELECT billing_worker.start_renewal_run(NULL)', 'SB101', 'a run has a worker');
SELECT billing_test.refuses('SELECT billing_worker.start_renewal_run(''w'', NULL)', 'SB104', 'and a time');

-- The emergency stop.
SELECT billing_ops.pause_renewing();
SELECT is(billing_worker.renew_due(10), 0, 'while an operator has stopped renewing, nothing is renewed');
SELECT billing_ops.resume_renewing();

-- Shards: customers step by 64, so that neighbours fall into different ones.
SELECT billing_test.subscription(billing_test.customer('second'), p_as_of => '2027-05-01T00:00:00Z');
CREATE TEMPORARY TABLE taken AS
SELECT billing_worker.renew_due(10, p_shard => 0, p_shards => 2) AS first, 0 AS second;
UPDATE taken SET second = billing_worker.renew_due(10, p_shard => 1, p_shards => 2);
SELECT results_eq('SELECT t.first, t.second FROM taken AS t', 'VALUES (1, 1)', 'two shards take one of two neighbours each');
SELECT is(billing_worker.renew_due(10), 0, 'and together all');
SELECT throws_ok(
    $$SELECT billing_test.run_as('billing_app', 'SELECT billing_worker.renew_due(10)')$$, '42501', NULL,
    'applications may not renew'
);

SELECT * FROM finish();
ROLLBACK;
