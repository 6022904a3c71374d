BEGIN;
SELECT plan(18);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.plan('TRIAL', p_trial_days => 30);
SELECT billing_test.paid_subscription(64, p_resource_ref => 'active');
SELECT billing_test.subscription(64, p_resource_ref => 'past_due');
SELECT billing_test.collect('DECLINED', 'insufficient_funds');
SELECT billing_test.subscription(64, 'TRIAL', 'trialing');
SELECT billing_test.subscription(64, p_resource_ref => 'incomplete', p_payment_behavior => 'PAY_FIRST');
CREATE TEMPORARY TABLE live AS SELECT s.subscription_id, s.resource_ref, s.status FROM billing_api.subscription AS s;
SELECT bag_eq(
    'SELECT resource_ref, status FROM live',
    $$VALUES ('active', 'ACTIVE'), ('past_due', 'PAST_DUE'), ('trialing', 'TRIALING'), ('incomplete', 'INCOMPLETE')$$,
    'there is one subscription in each live status'
);

SELECT results_eq(
    format(
        $$SELECT s.status, s.ended_at, s.end_reason, s.next_renewal_at
          FROM billing_api.cancel_subscription(%s, p_as_of => '2027-02-10Z') AS s$$, l.subscription_id
    ),
    $$VALUES ('CANCELED', '2027-02-10Z'::timestamptz, 'requested', NULL::timestamptz)$$,
    format('one that is %s ends now', l.status)
)
FROM live AS l ORDER BY l.subscription_id;
SELECT bag_eq(
    $$SELECT l.resource_ref, i.status, i.next_attempt_at FROM billing_api.invoice AS i INNER JOIN live AS l USING (subscription_id)$$,
    $$VALUES ('active', 'PAID', NULL::timestamptz), ('past_due', 'VOID', NULL), ('incomplete', 'VOID', NULL)$$,
    'what was open is void, what was paid stays paid'
);
SELECT bag_eq(
    $$SELECT l.resource_ref, p.period_end FROM billing.subscription_period AS p INNER JOIN live AS l USING (subscription_id)$$,
    $$VALUES ('active', '2027-02-10Z'::timestamptz), ('past_due', '2027-02-10Z'), ('trialing', '2027-02-10Z')$$,
    'the timeline ends there'
);
SELECT is(billing_test.collect(p_as_of => '2027-06-30Z'), 0, 'nothing is attempted afterwards');
SELECT is(billing_worker.renew_due(100, '2027-06-30Z'), 0, 'and nothing renewed');
SELECT is_empty(
    $$SELECT l.resource_ref FROM live AS l WHERE billing_api.has_access(64, l.resource_ref, '2027-02-10Z')$$, 'there is no access'
);
SELECT bag_eq(
    $$SELECT l.resource_ref, e.event_type FROM billing.outbox_event AS e
      INNER JOIN live AS l ON l.subscription_id = e.aggregate_id WHERE e.occurred_at = '2027-02-10Z'$$,
    $$VALUES ('active', 'SubscriptionCanceled'), ('past_due', 'InvoiceVoided'), ('past_due', 'SubscriptionCanceled'),
      ('trialing', 'SubscriptionCanceled'), ('incomplete', 'InvoiceVoided'), ('incomplete', 'SubscriptionCanceled')$$,
    'the world is told each end once'
);

SELECT billing_test.refuses(
    format($$SELECT billing_api.cancel_subscription(%s)$$, l.subscription_id), 'SB302',
    format('what was %s cannot be cancelled again', l.status), p_detail => 'ended at 2027-02-10T00:00:00Z: requested'
)
FROM live AS l ORDER BY l.subscription_id;
SELECT billing_api.create_subscription(64, 'BASIC', 'k1', 'expired');
SELECT billing_api.create_subscription(64, 'BASIC', 'k2', 'expired', p_quantity => 2);
SELECT billing_test.refuses(
    format($$SELECT billing_api.cancel_subscription(%s)$$, s.subscription_id), 'SB302', 'neither can what is EXPIRED'
)
FROM billing_api.subscription AS s WHERE s.status = 'EXPIRED';

-- A period that begins at the instant of the end is no period.
SELECT billing_test.subscription(64, p_resource_ref => 'at once');
SELECT results_eq(
    $$SELECT s.status, s.current_period_start, s.ended_at
      FROM billing_api.subscription AS v, billing_api.cancel_subscription(v.subscription_id) AS s WHERE v.resource_ref = 'at once'$$,
    $$VALUES ('CANCELED', NULL::timestamptz, '2027-01-31 10:30Z'::timestamptz)$$, 'cancelling at the start leaves no period'
);
SELECT billing_test.paid_subscription(64, p_resource_ref => 'early', p_as_of => '2027-02-01Z');
SELECT is(s.ended_at, '2027-02-01Z'::timestamptz, 'a call from before the period ends it at its start')
FROM billing_api.subscription AS v, billing_api.cancel_subscription(v.subscription_id) AS s WHERE v.resource_ref = 'early';

SELECT * FROM finish();
ROLLBACK;
