BEGIN;
SELECT plan(11);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.plan('YEN', 500, 'JPY');
SELECT billing_test.paid_subscription(64, p_resource_ref => 'one');
SELECT billing_test.paid_subscription(64, p_resource_ref => 'two');
SELECT is_empty('SELECT * FROM billing_ops.renewal_backlog', 'nothing is due to be renewed');
SELECT is_empty('SELECT * FROM billing_ops.collection_backlog', 'nothing is due to be collected');
SELECT is_empty('SELECT * FROM billing_ops.dunning_board', 'nothing was declined');

SELECT billing_ops.set_clock('2027-02-28 12:00Z');
SELECT results_eq(
    'SELECT * FROM billing_ops.renewal_backlog',
    $$VALUES ('2027-02-28 10:00Z'::timestamptz, 2::bigint, '2027-02-28 10:30Z'::timestamptz, interval '01:30')$$,
    'two are due since an hour and a half'
);
SELECT billing_worker.renew_due(10, p_run_id => billing_worker.start_renewal_run('test'));
SELECT results_eq(
    'SELECT p.status, p.worker, p.due_at_start, p.renewed, p.ended, p.parked FROM billing_ops.renewal_progress AS p',
    $$VALUES ('RUNNING', 'test', 2::bigint, 2::bigint, 0::bigint, 0::bigint)$$, 'the run shows what it did while it runs'
);
SELECT billing_ops.set_clock('2027-02-28 12:10Z');
SELECT results_eq(
    'SELECT b.gateway_account, b.lane, b.currency, b.invoices, b.held, b.amount_due, b.lag FROM billing_ops.collection_backlog AS b',
    $$VALUES ('sim', 'BACKLOG', 'USD', 2::bigint, 0::bigint, 6000::bigint, interval '00:10')$$, 'two invoices wait to be collected'
);
SELECT is(billing_test.collect('DECLINED', 'insufficient_funds'), 2, 'both are declined');
SELECT results_eq(
    $$SELECT d.subscription_status, d.amount_due, d.failure_count, d.retries, d.decline_code, d.decline_class, d.first_failed_at,
             d.next_attempt_at BETWEEN '2027-03-01 12:10Z' AND '2027-03-01 14:10Z', d.dunning_policy
      FROM billing_ops.dunning_board AS d$$,
    $$SELECT 'PAST_DUE', 3000::bigint, 1, 3, 'insufficient_funds', 'SOFT', '2027-02-28 12:10Z'::timestamptz, true, 'standard'
      FROM generate_series(1, 2)$$, 'the board shows how often, why, and what is next'
);

SELECT billing_api.create_customer('d', 'JPY');
SELECT billing_api.add_payment_method(128, 'sim', 'tok_ok');
SELECT billing_api.create_subscription(128, 'YEN', 'k');
SELECT billing_worker.start_attempts('sim', 10, 'dead worker');
SELECT is_empty('SELECT * FROM billing_ops.stuck_attempts', 'a charge in flight is not stuck');
UPDATE billing.payment_attempt SET lease_until = clock_timestamp() - interval '1 second' WHERE status = 'STARTED';
SELECT results_eq(
    'SELECT a.status, a.reason, a.amount, a.currency, a.gateway_account, a.claimed_by FROM billing_ops.stuck_attempts AS a',
    $$VALUES ('STARTED', 'lease_lapsed', 500::bigint, 'JPY', 'sim', 'dead worker')$$, 'one whose lease has lapsed is'
);
INSERT INTO billing.reconciliation_case (kind, customer_id, amount, currency, opened_at)
VALUES ('DISPUTE', 128, 500, 'JPY', '2027-02-28 11:10Z');
SELECT results_eq(
    'SELECT c.kind, c.age, c.amount FROM billing_ops.open_cases AS c', $$VALUES ('DISPUTE', interval '01:00', 500::bigint)$$,
    'a case is shown until it is resolved'
);

SELECT * FROM finish();
ROLLBACK;
