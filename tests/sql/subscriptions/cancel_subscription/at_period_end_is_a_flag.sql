BEGIN;
SELECT plan(21);
SELECT billing_test.clock('2027-01-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan('ANNUAL', 36000, p_interval_unit => 'YEAR');
SELECT billing_test.plan();
SELECT billing_test.plan('TRIAL', p_trial_days => 30);
SELECT billing_test.clock('2027-01-19 07:30:42Z');
SELECT billing_test.paid_subscription(64, 'ANNUAL', 'annual');

SELECT results_eq(
    $$SELECT s.status, s.cancel_at_period_end, s.current_period_end, s.next_renewal_at, s.ended_at
      FROM billing_api.cancel_subscription(64, true, p_idempotency_key => 'k') AS s$$,
    $$VALUES ('ACTIVE', true, '2028-01-19 07:30:42Z'::timestamptz, '2028-01-19 07:30:42Z'::timestamptz, NULL::timestamptz)$$,
    'it goes on to the end of its period'
);
SELECT results_eq(
    $$SELECT e.event_type, e.payload ->> 'effectiveAt' FROM billing.outbox_event AS e ORDER BY e.outbox_event_id DESC LIMIT 1$$,
    $$VALUES ('SubscriptionCancelScheduled', '2028-01-19T07:30:42Z')$$, 'the world is told when it will end'
);
CREATE TEMPORARY TABLE before AS SELECT s.version, s.event_seq FROM billing.subscription AS s;
SELECT is(s.cancel_at_period_end, true, 'asking again gives the same') FROM billing_api.cancel_subscription(64, true) AS s;
SELECT is(s.cancel_at_period_end, true, 'with the same key too')
FROM billing_api.cancel_subscription(64, true, p_idempotency_key => 'k') AS s;
SELECT results_eq('SELECT s.version, s.event_seq FROM billing.subscription AS s', 'TABLE before', 'and changes and tells nothing');

SELECT ok(billing_api.has_access(64, 'annual', '2028-01-19 07:30:41Z'), 'there is access to the last second');
SELECT ok(NOT billing_api.has_access(64, 'annual', '2028-01-19 07:30:42Z'), 'and none from the boundary on, whoever is late');
SELECT is(billing_worker.renew_due(100, '2028-02-27Z'), 1, 'the boundary is processed a month late');
SELECT results_eq(
    'SELECT s.status, s.ended_at, s.end_reason FROM billing_api.subscription AS s',
    $$VALUES ('CANCELED', '2028-01-19 07:30:42Z'::timestamptz, 'period_end')$$, 'it ended at the boundary all the same'
);
SELECT is_empty(
    $$SELECT l.* FROM billing.invoice_line AS l WHERE l.kind <> 'PERIOD' OR l.amount <> 36000$$, 'without a line of proration'
);
SELECT is_empty('TABLE billing.credit_entry', 'and without credit');

-- Where there is no paid period to go on to, it ends now.
SELECT billing_test.subscription(64, p_resource_ref => 'incomplete', p_payment_behavior => 'PAY_FIRST');
SELECT is(s.status, 'CANCELED', 'an open checkout has no period to end with')
FROM billing_api.subscription AS v, billing_api.cancel_subscription(v.subscription_id, true) AS s WHERE v.resource_ref = 'incomplete';
SELECT billing_test.subscription(64, p_resource_ref => 'past_due');
SELECT billing_test.collect('DECLINED', 'insufficient_funds');
SELECT results_eq(
    $$SELECT s.status, s.ended_at
      FROM billing_api.subscription AS v, billing_api.cancel_subscription(v.subscription_id, true) AS s
      WHERE v.resource_ref = 'past_due'$$,
    $$VALUES ('CANCELED', '2027-01-19 07:30:42Z'::timestamptz)$$, 'one that is past due ends now'
);
SELECT is(
    (SELECT i.status FROM billing_api.invoice AS i INNER JOIN billing_api.subscription AS s ON i.subscription_id = s.subscription_id
     WHERE s.resource_ref = 'past_due'), 'VOID', 'and its debt is void'
);
SELECT billing_test.subscription(64, 'TRIAL', 'trialing');
SELECT results_eq(
    $$SELECT s.status, s.cancel_at_period_end
      FROM billing_api.subscription AS v, billing_api.cancel_subscription(v.subscription_id, true) AS s WHERE v.resource_ref = 'trialing'$$,
    $$VALUES ('TRIALING', true)$$, 'a trial goes on to its end'
);
SELECT billing_worker.renew_due(100, '2027-03-01Z');
SELECT results_eq(
    $$SELECT s.status, s.ended_at, s.end_reason FROM billing_api.subscription AS s WHERE s.resource_ref = 'trialing'$$,
    $$VALUES ('CANCELED', '2027-02-18 07:30:42Z'::timestamptz, 'period_end')$$, 'and ends without a charge'
);

-- Overdue: two boundaries passed before the call. They come first, and the flag ends the period that runs.
SELECT billing_test.paid_subscription(64, p_resource_ref => 'overdue', p_as_of => '2027-01-15Z');
SELECT results_eq(
    $$SELECT s.status, s.cancel_at_period_end, s.current_period_start, s.current_period_end
      FROM billing_api.subscription AS v, billing_api.cancel_subscription(v.subscription_id, true, p_as_of => '2027-03-20Z') AS s
      WHERE v.resource_ref = 'overdue'$$,
    $$VALUES ('ACTIVE', true, '2027-03-15Z'::timestamptz, '2027-04-15Z'::timestamptz)$$,
    'an overdue subscription is renewed first'
);
-- At the boundary itself the flag comes before the new period.
SELECT billing_test.paid_subscription(64, p_resource_ref => 'boundary', p_as_of => '2027-01-15Z');
SELECT results_eq(
    $$SELECT s.cancel_at_period_end, s.current_period_end
      FROM billing_api.subscription AS v, billing_api.cancel_subscription(v.subscription_id, true, p_as_of => '2027-02-15Z') AS s
      WHERE v.resource_ref = 'boundary'$$,
    $$VALUES (true, '2027-02-15Z'::timestamptz)$$, 'at the boundary itself the flag comes first'
);
SELECT billing_worker.renew_due(100, '2027-02-15Z');
SELECT is(
    (SELECT s.status || ' ' || count(i.*)
     FROM billing_api.subscription AS s INNER JOIN billing_api.invoice AS i ON s.subscription_id = i.subscription_id
     WHERE s.resource_ref = 'boundary' GROUP BY s.status), 'CANCELED 1', 'and no new period is invoiced'
);
-- Now, on the way out: nothing more is invoiced; what was flagged ended at its boundary.
SELECT billing_test.paid_subscription(64, p_resource_ref => 'now', p_as_of => '2027-01-15Z');
SELECT is(
    (SELECT s.ended_at FROM billing_api.subscription AS v, billing_api.cancel_subscription(v.subscription_id, p_as_of => '2027-03-20Z') AS s
     WHERE v.resource_ref = 'now'), '2027-03-20Z'::timestamptz, 'an overdue one cancelled now invoices nothing on the way out'
);
SELECT billing_test.paid_subscription(64, p_resource_ref => 'flagged', p_as_of => '2027-01-15Z');
SELECT billing_api.cancel_subscription(s.subscription_id, true) FROM billing_api.subscription AS s WHERE s.resource_ref = 'flagged';
SELECT results_eq(
    $$SELECT s.ended_at, s.end_reason
      FROM billing_api.subscription AS v, billing_api.cancel_subscription(v.subscription_id, p_as_of => '2027-03-20Z') AS s
      WHERE v.resource_ref = 'flagged'$$,
    $$VALUES ('2027-02-15Z'::timestamptz, 'period_end')$$, 'one that was flagged has ended at its boundary'
);

SELECT * FROM finish();
ROLLBACK;
