-- C15, and everything that may come between a change and its payment.
BEGIN;
SELECT plan(35);
SELECT billing_test.plans();

-- C15: declined. Old plan, old status, no dunning.
SELECT billing_test.paid('c15', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(64, 'PRO', p_as_of => '2027-04-16Z');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-04-16Z');
SELECT results_eq(
    $$SELECT s.plan_code, s.pending_plan_code, s.status, s.current_period_end, s.next_renewal_at
      FROM billing_api.subscription AS s WHERE s.subscription_id = 64$$,
    $$VALUES ('BASIC', NULL, 'ACTIVE', '2027-05-01Z'::timestamptz, '2027-05-01Z'::timestamptz)$$, 'C15: everything is as before'
);
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(64)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('CHANGE VOID 3000 due', 'PRORATION -1500, PRORATION 4500')$$,
    'C15: its invoice is void'
);
SELECT is(billing_test.credit_of(64), 0::bigint, 'C15: no credit comes of it');
SELECT is(
    (SELECT count(*) FROM billing.invoice AS i WHERE i.next_attempt_at IS NOT NULL), 0::bigint, 'C15: no retry is planned'
);
SELECT is(
    billing_test.published(64),
    'SubscriptionCreated InvoiceOpened InvoicePaid SubscriptionActivated InvoiceOpened InvoicePaymentFailed InvoiceVoided',
    'C15: the world hears of the failure and of the void, not of dunning'
);
SELECT ok(billing_api.has_access(s.customer_id, NULL, '2027-04-20Z'), 'C15: access stays')
FROM billing.subscription AS s WHERE s.subscription_id = 64;
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT is(i.total, 3000::bigint, 'C15: the renewal is the old price')
FROM billing_api.invoice AS i WHERE i.subscription_id = 64 AND i.kind = 'RENEWAL';

-- Meanwhile it stands in the way of other changes, a pause and an early renewal.
SELECT billing_test.paid('waits', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(128, 'PRO', p_as_of => '2027-04-16Z');
SELECT billing_test.refuses($$SELECT billing_api.change_plan(128, 'TEAM', p_as_of => '2027-04-16Z')$$, 'SB321', 'it blocks another change');
SELECT billing_test.refuses(
    $$SELECT billing_api.change_plan(128, 'TEAM', p_timing => 'AT_PERIOD_END', p_as_of => '2027-04-16Z')$$,
    'SB321', 'one at the end as well'
);
SELECT billing_test.refuses($$SELECT billing_api.pause_subscription(128, p_as_of => '2027-04-16Z')$$, 'SB321', 'it blocks a pause');
SELECT billing_test.refuses($$SELECT billing_api.renew_now(128, p_as_of => '2027-04-16Z')$$, 'SB321', 'it blocks an early renewal');

-- Taken back by hand, but not while its payment is in flight.
SELECT is(s.pending_plan_code, NULL, 'it can be taken back') FROM billing_api.undo_change(128, p_as_of => '2027-04-17Z') AS s;
SELECT billing_test.refuses($$SELECT billing_api.undo_change(128, p_as_of => '2027-04-17Z')$$, 'SB322', 'once');
SELECT billing_api.change_plan(128, 'PRO', p_as_of => '2027-04-18Z');
SELECT is(billing_test.start('2027-04-18Z') > 0, true, 'a charge is on its way');
SELECT billing_test.refuses($$SELECT billing_api.undo_change(128, p_as_of => '2027-04-18Z')$$, 'SB306', 'which cannot be taken back');
SELECT billing_test.report(max(a.attempt_id), 'UNKNOWN', '2027-04-18Z') FROM billing.payment_attempt AS a;
SELECT billing_test.refuses(
    $$SELECT billing_api.undo_change(128, p_as_of => '2027-04-19Z')$$, 'SB306', 'nor while nobody knows what became of it'
);

-- The boundary takes it back; the money that arrives after that is credit.
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT results_eq(
    $$SELECT i.invoice FROM billing_test.invoices_of(128) AS i$$,
    $$VALUES ('INITIAL PAID 3000 paid'), ('CHANGE VOID 3000 due'), ('CHANGE VOID 2600 due'), ('RENEWAL OPEN 3000 due')$$,
    'at the boundary it is void, and the old plan is renewed'
);
SELECT is(
    (SELECT x.verdict FROM billing_test.report(
        (SELECT max(a.attempt_id) FROM billing.payment_attempt AS a), 'SUCCEEDED', '2027-05-01 00:01Z', p_payment_id => 'late'
    ) AS x), 'APPLIED', 'late money is taken'
);
SELECT is(billing_test.credit_of(128), 2600::bigint, 'as credit: 13 of 30 days of the difference');
SELECT is(s.plan_code, 'BASIC', 'and revives no change') FROM billing_api.subscription AS s WHERE s.subscription_id = 128;

-- A cancellation takes it back, now and at the end.
SELECT billing_test.paid('cancels', 'BASIC', '2027-04-01Z'), billing_test.paid('cancels later', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(s.no, 'PRO', p_as_of => '2027-04-16Z') FROM unnest('{192, 256}'::bigint[]) AS s (no);
SELECT billing_api.cancel_subscription(192, p_unused_time => 'CREDIT', p_as_of => '2027-04-16Z');
SELECT is(billing_test.credit_of(192), 1500::bigint, 'who cancels gets back what was paid for, by the old price');
SELECT billing_api.cancel_subscription(256, true, p_as_of => '2027-04-16Z');
SELECT results_eq(
    'SELECT c.status, count(*) FROM billing.subscription_change AS c WHERE c.subscription_id IN (192, 256) GROUP BY c.status',
    $$VALUES ('VOID', 2::bigint)$$, 'a cancellation takes the change back, now or later'
);
SELECT is(s.pending_plan_code, NULL, 'nothing waits any more') FROM billing_api.undo_cancel(256, p_as_of => '2027-04-17Z') AS s;

-- Credit that it drew goes back with it.
SELECT billing_test.paid('drawn', 'BASIC', '2027-04-01Z');
SELECT billing_api.grant_credit(320, 1000, 'USD', 'gift', 'gift', p_as_of => '2027-04-02Z');
SELECT billing_api.change_plan(320, 'PRO', p_as_of => '2027-04-16Z');
SELECT is(billing_test.credit_of(320), 0::bigint, 'credit is drawn when it is issued');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-04-16Z');
SELECT is(billing_test.credit_of(320), 1000::bigint, 'and goes back when it is void');

-- It is paid days later: the change is as of when it was made.
SELECT billing_test.paid('slow', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(384, 'ANNUAL', p_as_of => '2027-04-16Z');
SELECT billing_test.report(billing_test.start('2027-04-16Z'), 'UNKNOWN', '2027-04-16Z');
SELECT billing_test.report(
    (SELECT max(a.attempt_id) FROM billing.payment_attempt AS a), 'SUCCEEDED', '2027-04-20Z', p_source => 'LOOKUP', p_payment_id => 'slow'
);
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(384)', $$VALUES ('BILLED 2027-04-01 to 2027-04-16'), ('BILLED 2027-04-16 to 2028-04-16')$$,
    'a payment that took four days lets it take effect from when it was made'
);
SELECT is(
    (SELECT e.as_of FROM billing.subscription_event AS e WHERE e.subscription_id = 384 AND e.event_type = 'SubscriptionPlanChanged'),
    '2027-04-20Z'::timestamptz, 'and the log says when that was known'
);

-- Without a payment method the first look at it is the definite no.
SELECT billing_test.customer('no card', p_token => NULL);
SELECT billing_api.create_subscription(c.customer_id, 'FREE', 'k', p_as_of => '2027-04-01Z')
FROM billing.customer AS c WHERE c.external_ref = 'no card';
SELECT is(s.plan_code || ' then ' || s.pending_plan_code, 'FREE then PRO', 'a change without a payment method waits')
FROM billing_api.change_plan(448, 'PRO', p_as_of => '2027-04-16Z') AS s;
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT results_eq(
    'SELECT s.plan_code, s.status FROM billing_api.subscription AS s WHERE s.subscription_id = 448', $$VALUES ('FREE', 'ACTIVE')$$,
    'and is void when it is to be collected'
);

-- Granted first: at once, and then as any debt.
SELECT billing_test.paid('granted', 'BASIC', '2027-04-01Z');
SELECT is(s.plan_code, 'PRO', 'granted first it takes effect at once')
FROM billing_api.change_plan(512, 'PRO', p_payment_behavior => 'GRANT_FIRST', p_as_of => '2027-04-16Z') AS s;
SELECT results_eq(
    $$SELECT i.lane, i.drives_status FROM billing.invoice AS i WHERE i.subscription_id = 512 AND i.kind = 'CHANGE'$$,
    $$VALUES ('BACKLOG', true)$$, 'its invoice drives the status, and nobody waits for it'
);
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-04-16Z');
SELECT results_eq(
    'SELECT s.status, s.plan_code FROM billing_api.subscription AS s WHERE s.subscription_id = 512', $$VALUES ('PAST_DUE', 'PRO')$$,
    'a decline makes it past due, on the new plan'
);
SELECT billing_test.collect(p_as_of => '2027-04-17Z');
SELECT is(s.status, 'ACTIVE', 'and its payment recovers it') FROM billing_api.subscription AS s WHERE s.subscription_id = 512;

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
