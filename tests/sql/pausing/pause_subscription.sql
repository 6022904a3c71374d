-- P02, P04 and the guards of a pause: at once, at the end of the period, at its edges, and never while money is owed.
BEGIN;
SELECT plan(32);
SELECT billing_test.plans();

SELECT billing_test.paid('now', 'BASIC', '2027-04-01Z');
SELECT results_eq(
    $$SELECT s.status, s.current_period_start, s.current_period_end, s.next_renewal_at
      FROM billing_api.pause_subscription(64, p_as_of => '2027-04-21Z') AS s$$,
    $$VALUES ('PAUSED', '2027-04-21Z'::timestamptz, NULL::timestamptz, NULL::timestamptz)$$, 'a pause has no end, and nothing is due in it'
);
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(64)', $$VALUES ('BILLED 2027-04-01 to 2027-04-21'), ('PAUSED 2027-04-21 to ...')$$,
    'the period ends where it begins'
);
SELECT is(billing_api.has_access(64, NULL, x.at::timestamptz), x.has, 'access at ' || x.at)
FROM (VALUES ('2027-04-20 23:59:59Z', false), ('2027-04-21Z', false), ('2027-12-01Z', false)) AS x (at, has);
SELECT is(billing_worker.renew_due(10, '2027-12-01Z'), 0, 'it is never billed');
SELECT billing_test.refuses($$SELECT billing_api.pause_subscription(64, p_as_of => '2027-05-01Z')$$, 'SB303', 'a pause is not paused');
SELECT is(
    billing_test.published(64),
    'SubscriptionCreated InvoiceOpened InvoicePaid SubscriptionActivated SubscriptionPaused', 'the world is told'
);

-- At the end of the period it is a flag.
SELECT billing_test.paid('at end', 'BASIC', '2027-04-01Z');
SELECT results_eq(
    $$SELECT s.status, s.pause_at_period_end, s.next_renewal_at
      FROM billing_api.pause_subscription(128, true, p_as_of => '2027-04-10Z') AS s$$,
    $$VALUES ('ACTIVE', true, '2027-05-01Z'::timestamptz)$$, 'at the end of the period it is a flag'
);
SELECT is(s.version, (SELECT x.version FROM billing.subscription AS x WHERE x.subscription_id = 128), 'which is set once')
FROM billing_api.pause_subscription(128, true, p_as_of => '2027-04-11Z') AS s;
SELECT is(billing_api.has_access(128, NULL, x.at::timestamptz), x.has, 'access at ' || x.at)
FROM (VALUES ('2027-04-30 23:59:59Z', true), ('2027-05-01Z', false)) AS x (at, has);
SELECT billing_worker.renew_due(10, '2027-05-07Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(128)', $$VALUES ('BILLED 2027-04-01 to 2027-05-01'), ('PAUSED 2027-05-01 to ...')$$,
    'it pauses at the boundary, whenever that is taken up'
);
SELECT results_eq(
    $$SELECT s.status, s.pause_at_period_end, s.paused_seconds_left FROM billing.subscription AS s WHERE s.subscription_id = 128$$,
    $$VALUES ('PAUSED', false, 0::bigint)$$, 'with nothing left'
);
SELECT is((SELECT count(*) FROM billing_api.invoice AS i WHERE i.subscription_id = 128), 1::bigint, 'and May is not billed');

-- P04: not while money is owed, or a change waits for it.
SELECT billing_test.paid('p04', 'BASIC', '2027-04-01Z');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.pause_subscription(192, p_as_of => '2027-05-01Z')$$, 'SB320', 'P04: not while an invoice is open',
    p_detail => (SELECT max(i.invoice_id)::text FROM billing_api.invoice AS i WHERE i.subscription_id = 192)
);
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-05-01Z');
SELECT billing_test.refuses(
    format('SELECT billing_api.pause_subscription(192, %s, p_as_of => ''2027-05-02Z'')', x.at_end), 'SB303', 'P04: nor while it is past due'
)
FROM (VALUES ('false'), ('true')) AS x (at_end);
SELECT billing_test.paid('change', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(256, 'PRO', p_as_of => '2027-04-16Z');
SELECT billing_test.refuses(
    format('SELECT billing_api.pause_subscription(256, %s, p_as_of => ''2027-04-16Z'')', x.at_end), 'SB321',
    'nor while a change waits to be paid'
)
FROM (VALUES ('false'), ('true')) AS x (at_end);

-- Cancelled while paused, it ends at once.
SELECT is(s.status, 'CANCELED', 'P04: a pause can be cancelled')
FROM billing_api.cancel_subscription(128, true, p_as_of => '2027-05-10Z') AS s;
SELECT billing_test.refuses($$SELECT billing_api.resume_subscription(128, p_as_of => '2027-05-11Z')$$, 'SB302', 'P04: and resumes no more');
SELECT billing_api.cancel_subscription(64, p_unused_time => 'CREDIT', p_as_of => '2027-11-11Z');
SELECT is(billing_test.credit_of(64), 1000::bigint, 'the ten days that were left come back, however long it was paused');

-- Trials and checkouts have nothing to pause.
SELECT billing_test.customer('trial');
SELECT billing_api.create_subscription(c.customer_id, 'BASIC', 'k', p_trial_days => 14, p_as_of => '2027-04-01Z')
FROM billing.customer AS c WHERE c.external_ref = 'trial';
SELECT billing_test.refuses($$SELECT billing_api.pause_subscription(320, p_as_of => '2027-04-02Z')$$, 'SB303', 'a trial is not paused');
SELECT billing_test.refuses($$SELECT billing_api.pause_subscription(320, NULL, p_as_of => '2027-04-02Z')$$, 'SB101', 'NULL is no choice');
SELECT billing_test.refuses(
    $$SELECT billing_api.pause_subscription(320, p_expected_version => 99, p_as_of => '2027-04-02Z')$$, 'SB304', 'nor is another version'
);

-- At the very start the period's row is replaced; at the very end nothing is left.
SELECT billing_test.paid('start', 'BASIC', '2027-04-01Z'), billing_test.paid('end', 'BASIC', '2027-04-01Z');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT billing_test.collect(p_as_of => '2027-05-01Z');
SELECT billing_api.pause_subscription(384, p_as_of => '2027-05-01Z');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(384)', $$VALUES ('BILLED 2027-04-01 to 2027-05-01'), ('PAUSED 2027-05-01 to ...')$$,
    'at its start a period is replaced by the pause'
);
SELECT is(s.paused_seconds_left, 2678400::bigint, 'and all 31 days of it are left')
FROM billing.subscription AS s WHERE s.subscription_id = 384;
SELECT billing_api.pause_subscription(448, p_as_of => '2027-05-31 23:59:59Z');
SELECT is(s.paused_seconds_left, 1::bigint, 'in its last second one second is left')
FROM billing.subscription AS s WHERE s.subscription_id = 448;

-- A cancellation that was set before beats a pause at the same boundary.
SELECT billing_test.paid('both', 'BASIC', '2027-04-01Z');
SELECT billing_api.pause_subscription(512, true, p_as_of => '2027-04-10Z');
SELECT billing_api.cancel_subscription(512, true, p_as_of => '2027-04-10Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT is(s.status || ' ' || s.end_reason, 'CANCELED period_end', 'a cancellation beats a pause')
FROM billing_api.subscription AS s WHERE s.subscription_id = 512;

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
