BEGIN;
SELECT plan(22);
SELECT billing_test.clock('2027-03-20 10:00Z');
SELECT billing_test.customer('c', p_time_zone => 'Europe/Berlin');
SELECT billing_test.plan('BASIC', p_trial_days => 14);
SELECT billing_test.plan('PRO', 9000, p_trial_days => 14, p_trial_once_per => 'PLAN');
SELECT billing_test.plan('SEAT', 500, p_trial_days => 14, p_trial_once_per => 'RESOURCE');

-- Daylight saving begins on 28 March: the trial ends at the same local hour.
SELECT results_eq(
    $$SELECT s.status, s.current_period_kind, s.current_period_start, s.current_period_end, s.next_renewal_at
      FROM billing_api.create_subscription(64, 'BASIC', 'k1', 'one') AS s$$,
    $$VALUES ('TRIALING', 'TRIAL', '2027-03-20 10:00Z'::timestamptz, '2027-04-03 09:00Z'::timestamptz, '2027-04-03 09:00Z'::timestamptz)$$,
    'a plan with a trial begins with it'
);
SELECT is_empty('SELECT * FROM billing.invoice', 'nothing is invoiced before it ends');
SELECT results_eq(
    'SELECT s.anchor_at, s.period_no, s.event_seq FROM billing.subscription AS s',
    $$VALUES ('2027-04-03 11:00'::timestamp, 0, 1::bigint)$$, 'the anchor is its end, which is boundary 0'
);
SELECT results_eq(
    'SELECT p.kind, p.invoice_id, p.opened_seq FROM billing.subscription_period AS p', $$VALUES ('TRIAL', NULL::bigint, 1::bigint)$$,
    'the timeline begins with it'
);
SELECT results_eq(
    'SELECT e.event_type, e.to_status FROM billing.subscription_event AS e', $$VALUES ('SubscriptionCreated', 'TRIALING')$$,
    'one event tells of it'
);
SELECT ok(billing_api.has_access(64, 'one', '2027-04-03 08:59:59Z'), 'there is access in a trial');
SELECT bag_eq(
    'SELECT t.scope FROM billing.trial_taken AS t', $$VALUES ('customer'), ('plan:64'), ('resource:64')$$,
    'it is remembered in every scope'
);

SELECT is(s.status, 'INCOMPLETE', 'a second sign-up for a plan of one trial per customer gets none')
FROM billing_api.create_subscription(64, 'BASIC', 'k2', 'two') AS s;
SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(64, 'BASIC', 'k3', 'three', p_trial_days => 7)$$, 'SB308',
    'asking for one is refused', p_detail => 'customer'
);
SELECT is(s.status, 'TRIALING', 'a plan of one trial per plan gives one')
FROM billing_api.create_subscription(64, 'PRO', 'k4', 'four') AS s;
SELECT is(s.status, 'INCOMPLETE', 'but not two')
FROM billing_api.create_subscription(64, 'PRO', 'k5', 'five') AS s;
SELECT is(s.status, 'TRIALING', 'a plan of one trial per resource gives one for each')
FROM billing_api.create_subscription(64, 'SEAT', 'k6', 'six') AS s;
SELECT is(s.status, 'TRIALING', 'and for the next')
FROM billing_api.create_subscription(64, 'SEAT', 'k7', 'seven') AS s;
SELECT billing_api.cancel_subscription(s.subscription_id) FROM billing_api.subscription AS s WHERE s.resource_ref = 'six';
SELECT is(s.status, 'INCOMPLETE', 'cancelling and signing up again gives no second one')
FROM billing_api.create_subscription(64, 'SEAT', 'k8', 'six') AS s;

SELECT billing_test.customer('d');
SELECT is(s.status, 'INCOMPLETE', 'p_trial_days 0 takes none')
FROM billing_api.create_subscription(128, 'BASIC', 'k1', p_trial_days => 0) AS s;
SELECT is_empty('SELECT * FROM billing.trial_taken AS t WHERE t.customer_id = 128', 'and uses none up');
SELECT results_eq(
    $$SELECT s.status, s.current_period_end
      FROM billing_api.create_subscription(128, 'BASIC', 'k2', p_trial_days => 30) AS s$$,
    $$VALUES ('TRIALING', '2027-04-19 10:00Z'::timestamptz)$$, 'p_trial_days sets another length'
);
SELECT is(
    (SELECT s.end_reason FROM billing_api.subscription AS s WHERE s.customer_id = 128 AND s.status = 'EXPIRED'),
    'checkout_restarted', 'and takes the place of the open checkout'
);

-- Calendar billing after a trial: the trial ends on 3 April, the first billed period is the stub to 1 May.
SELECT billing_test.customer('e');
SELECT billing_api.create_subscription(192, 'BASIC', 'k', p_anchor_day => 1);
SELECT results_eq(
    'SELECT s.current_period_end, s.anchor_at, s.period_no FROM billing.subscription AS s WHERE s.customer_id = 192',
    $$VALUES ('2027-04-03 10:00Z'::timestamptz, '2027-04-01'::timestamp, 0)$$,
    'with a calendar the anchor is the first of that month, and the next boundary ends the stub'
);
-- A term counts from the end of the trial: 3 April + 2 months.
SELECT billing_test.customer('f');
SELECT is(s.term_end_at, '2027-06-03 10:00Z'::timestamptz, 'a term does not count the trial')
FROM billing_api.create_subscription(256, 'BASIC', 'k', p_auto_renew => false, p_term_periods => 2) AS s;
SELECT lives_ok(
    $$SELECT billing_worker.renew_due(100, '2027-04-03 10:00Z')$$, 'at its end it is renewed'
);
-- 3000 x 2,383,200 s from 3 April 10:00 to 1 May / 2,592,000 s of April = 2758.33
SELECT results_eq(
    $$SELECT i.total, i.period_start, i.period_end FROM billing_api.invoice AS i WHERE i.customer_id = 192$$,
    $$VALUES (2758::bigint, '2027-04-03 10:00Z'::timestamptz, '2027-05-01Z'::timestamptz)$$,
    'and the stub is invoiced by its seconds'
);

SELECT * FROM finish();
ROLLBACK;
