BEGIN;
SELECT plan(10);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_api.create_plan(p.code, p.code, p.amount, 'USD', 'MONTH', p_trial_days => p.trial_days, p_as_of => '2027-01-01T00:00:00Z')
FROM (VALUES ('FREE', 0::bigint, 0), ('FREE_TRIAL', 0, 14), ('TRIAL', 3000, 14)) AS p (code, amount, trial_days);
CREATE TEMPORARY TABLE sold (name text, subscription_id bigint);
INSERT INTO sold VALUES
('free', billing_test.subscription(billing_test.customer('a', p_token => NULL), 'FREE', p_as_of => '2027-04-01T00:00:00Z')),
('free trial', billing_test.subscription(billing_test.customer('b', p_token => NULL), 'FREE_TRIAL', p_as_of => '2027-04-17T00:00:00Z')),
('trial with credit', billing_test.subscription(billing_test.customer('c'), 'TRIAL', p_as_of => '2027-04-17T00:00:00Z'));
SELECT billing_api.grant_credit(s.customer_id, 3000, 'USD', 'welcome', 'k', '2027-04-17T00:00:00Z')
FROM billing.subscription AS s INNER JOIN sold AS x USING (subscription_id) WHERE x.name = 'trial with credit';

SELECT is(billing_worker.renew_due(10, '2027-05-01T00:00:00Z'), 3, 'three subscriptions reach a boundary');
SELECT results_eq(
    $$SELECT x.name, i.status, i.total, i.credit_applied, i.amount_due, i.paid_at, i.next_attempt_at, i.attempt_count
      FROM billing.invoice AS i INNER JOIN sold AS x USING (subscription_id) WHERE i.kind = 'RENEWAL' ORDER BY x.name$$,
    $$VALUES ('free', 'PAID', 0::bigint, 0::bigint, 0::bigint, '2027-05-01Z'::timestamptz, NULL::timestamptz, 0),
      ('free trial', 'PAID', 0, 0, 0, '2027-05-01Z', NULL, 0),
      ('trial with credit', 'PAID', 3000, 3000, 0, '2027-05-01Z', NULL, 0)$$,
    'invoices that come to zero, or that credit covers, are paid when they are issued'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.start_attempts('sim', 10, 'test', '2027-06-01T00:00:00Z')), 0::bigint,
    'no gateway is called for them'
);
SELECT is((SELECT count(*) FROM billing.payment_attempt), 0::bigint, 'and there is no attempt');
SELECT results_eq(
    $$SELECT x.name, s.status FROM billing.subscription AS s INNER JOIN sold AS x USING (subscription_id) ORDER BY 1$$,
    $$VALUES ('free', 'ACTIVE'), ('free trial', 'ACTIVE'), ('trial with credit', 'ACTIVE')$$,
    'a trial whose first invoice is paid at once is ACTIVE at once, without a payment method where it costs nothing'
);
SELECT results_eq(
    $$SELECT x.name, billing_test.log_of(x.subscription_id) FROM sold AS x ORDER BY 1$$,
    $$VALUES ('free', 'SubscriptionCreated InvoiceOpened InvoicePaid InvoicePaid SubscriptionRenewed'),
      ('free trial', 'SubscriptionCreated InvoicePaid SubscriptionActivated'),
      ('trial with credit', 'SubscriptionCreated InvoicePaid SubscriptionActivated')$$,
    'the log tells who was renewed and who began to pay'
);
SELECT results_eq(
    $$SELECT x.name, e.from_status, e.to_status FROM billing.subscription_event AS e INNER JOIN sold AS x USING (subscription_id)
      WHERE e.event_type = 'SubscriptionActivated' ORDER BY 1$$,
    $$VALUES ('free trial', 'TRIALING', 'ACTIVE'), ('trial with credit', 'TRIALING', 'ACTIVE')$$,
    'with the status before and after'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty(
    $$SELECT x.name, p.kind, p.period_start FROM billing.subscription_period AS p INNER JOIN sold AS x USING (subscription_id)
      WHERE p.kind = 'BILLED' AND p.invoice_id IS NULL$$,
    'each billed period names its invoice, free or not'
);

SELECT * FROM finish();
ROLLBACK;
