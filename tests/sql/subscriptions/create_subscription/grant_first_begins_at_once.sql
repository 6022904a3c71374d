BEGIN;
SELECT plan(12);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_api.create_plan('TRUST', 'Trust', 100, 'USD', 'MONTH', p_grant_first_allowed => true);

SELECT results_eq(
    $$SELECT s.status, s.current_period_kind, s.current_period_start, s.current_period_end, s.next_renewal_at, s.version
      FROM billing_api.create_subscription(64, 'BASIC', 'k', p_quantity => 3, p_payment_behavior => 'GRANT_FIRST') AS s$$,
    $$VALUES ('ACTIVE', 'BILLED', '2027-01-31 10:30Z'::timestamptz, '2027-02-28 10:30Z'::timestamptz,
              '2027-02-28 10:30Z'::timestamptz, 1::bigint)$$,
    'a sign-up that is granted first is ACTIVE at once'
);
SELECT results_eq(
    'SELECT i.kind, i.status, i.total, i.quantity, i.drives_status, i.lane FROM billing.invoice AS i',
    $$VALUES ('INITIAL', 'OPEN', 9000::bigint, 3, true, 'INTERACTIVE')$$, 'its invoice drives the status: a decline makes it PAST_DUE'
);
SELECT results_eq(
    $$SELECT p.period_start, p.period_end, p.prev_end, p.kind, p.invoice_id, p.opened_seq FROM billing.subscription_period AS p$$,
    $$VALUES ('2027-01-31 10:30Z'::timestamptz, '2027-02-28 10:30Z'::timestamptz, NULL::timestamptz, 'BILLED', 64::bigint, 1::bigint)$$,
    'the timeline begins with the billed period'
);
SELECT results_eq(
    'SELECT e.event_seq, e.event_type, e.to_status FROM billing.subscription_event AS e ORDER BY e.event_seq',
    $$VALUES (1::bigint, 'SubscriptionCreated', 'ACTIVE'), (2, 'InvoiceOpened', NULL)$$, 'it is created as ACTIVE'
);
SELECT ok(billing_api.has_access(64), 'there is access at once');
SELECT is((SELECT s.anchor_at FROM billing.subscription AS s), '2027-01-31 10:30'::timestamp, 'the anchor is the sign-up');

SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(64, 'BASIC', 'k2', 'other', p_payment_behavior => 'GRANT_FIRST')$$, 'SB313',
    'an internal system may not grant first', 'billing_app'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(64, 'BASIC', 'k2', 'other', p_trial_days => 7, p_payment_behavior => 'GRANT_FIRST')$$,
    'SB313', 'not after a trial either', 'billing_app'
);
SELECT lives_ok(
    $$SELECT billing_test.run_as('billing_app',
      $q$SELECT billing_api.create_subscription(64, 'TRUST', 'k3', 'trusted', p_payment_behavior => 'GRANT_FIRST')$q$)$$,
    'except where the plan allows it'
);
SELECT lives_ok(
    $$SELECT billing_test.run_as('billing_operator',
      $q$SELECT billing_api.create_subscription(64, 'BASIC', 'k4', 'helped', p_payment_behavior => 'GRANT_FIRST')$q$)$$,
    'an operator may always'
);
SELECT is(
    (SELECT e.actor FROM billing.subscription_event AS e INNER JOIN billing_api.subscription AS s ON e.subscription_id = s.subscription_id
     WHERE s.resource_ref = 'helped' AND e.event_seq = 1),
    'billing_operator', 'and the log says who it was'
);
SELECT is((SELECT count(*) FROM billing.subscription AS s WHERE s.status = 'ACTIVE'), 3::bigint, 'all of them are ACTIVE');

SELECT * FROM finish();
ROLLBACK;
