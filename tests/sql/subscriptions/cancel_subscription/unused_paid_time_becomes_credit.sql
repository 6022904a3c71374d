BEGIN;
SELECT plan(13);
SELECT billing_test.clock('2027-04-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan('FORTY_NINE', 4900);
SELECT billing_test.plan('YEN', 10000, 'JPY');
SELECT billing_test.plan('TRIAL', p_trial_days => 30);

-- 20 of the 30 days of April: 4900 x 20 / 30 = 3266.67.
SELECT billing_test.paid_subscription(64, 'FORTY_NINE', 'paid');
SELECT is(s.status, 'CANCELED', 'cancelled after ten days')
FROM billing_api.cancel_subscription(64, p_unused_time => 'CREDIT', p_as_of => '2027-04-11Z') AS s;
SELECT results_eq(
    'SELECT e.kind, e.currency, e.amount, e.invoice_id, e.as_of FROM billing.credit_entry AS e',
    $$VALUES ('UNUSED_TIME', 'USD', 3266::bigint, 64::bigint, '2027-04-11Z'::timestamptz)$$, 'the unused part is credit, floored'
);
SELECT billing_test.paid_subscription(64, 'FORTY_NINE', 'none', p_as_of => '2027-04-01Z');
SELECT billing_api.cancel_subscription(s.subscription_id, p_as_of => '2027-04-11Z')
FROM billing_api.subscription AS s WHERE s.resource_ref = 'none';

-- It was paid with the credit of the first one (3266) and 1634 in money: all of it counts as paid.
SELECT is((SELECT b.balance FROM billing_api.credit_balance AS b), 0::bigint, 'without p_unused_time nothing comes back');
SELECT billing_api.grant_credit(64, 4900, 'USD', 'gift', 'g');
SELECT billing_test.paid_subscription(64, 'FORTY_NINE', 'credit', p_as_of => '2027-04-01Z');
SELECT billing_api.cancel_subscription(s.subscription_id, p_unused_time => 'CREDIT', p_as_of => '2027-04-11Z')
FROM billing_api.subscription AS s WHERE s.resource_ref = 'credit';
SELECT is((SELECT b.balance FROM billing_api.credit_balance AS b), 3266::bigint, 'what was paid with credit counts as paid');

-- Not paid: the invoice is void, and there is nothing to give back but what it drew.
SELECT billing_test.subscription(64, 'FORTY_NINE', 'open');
SELECT is(
    (SELECT i.credit_applied FROM billing_api.invoice AS i WHERE i.status = 'OPEN'), 3266::bigint, 'an open invoice has drawn 3266'
);
SELECT billing_api.cancel_subscription(s.subscription_id, p_unused_time => 'CREDIT', p_as_of => '2027-04-11Z')
FROM billing_api.subscription AS s WHERE s.resource_ref = 'open';
SELECT results_eq(
    $$SELECT b.balance, e.kind, e.amount FROM billing.credit_balance AS b
      INNER JOIN billing.credit_entry AS e USING (customer_id, entry_seq)$$,
    $$VALUES (3266::bigint, 'RETURNED', 3266::bigint)$$, 'which comes back, once'
);

-- A stub: 15 of 30 days were priced (4900 x 15 / 30 = 2450), 10 days are left: 4900 x 10 / 30 = 1633.
SELECT billing_test.customer('d');
SELECT billing_test.paid_subscription(128, 'FORTY_NINE', 'stub', 1, '2027-04-16Z');
SELECT is(
    (SELECT i.amount_paid FROM billing_api.invoice AS i WHERE i.customer_id = 128), 2450::bigint, 'a stub of 15 days costs 2450'
);
SELECT billing_api.cancel_subscription(s.subscription_id, p_unused_time => 'CREDIT', p_as_of => '2027-04-21Z')
FROM billing_api.subscription AS s WHERE s.resource_ref = 'stub';
SELECT is(
    (SELECT b.balance FROM billing_api.credit_balance AS b WHERE b.customer_id = 128), 1633::bigint,
    'the unused part of a stub is a part of the full period as it was priced'
);

-- Yen have no decimals: 10000 x 24 / 30 of April.
SELECT billing_test.customer('e', 'JPY');
SELECT billing_test.paid_subscription(192, 'YEN', 'yen');
SELECT billing_api.cancel_subscription(s.subscription_id, p_unused_time => 'CREDIT', p_as_of => '2027-04-07Z')
FROM billing_api.subscription AS s WHERE s.resource_ref = 'yen';
SELECT is(
    (SELECT b.balance FROM billing_api.credit_balance AS b WHERE b.customer_id = 192), 8000::bigint, '24 of 30 days of 10000 yen are 8000'
);

-- To the second: one second is used of 2,592,000. 4900 x 2591999 / 2592000 = 4899.998.
SELECT billing_test.customer('f');
SELECT billing_test.paid_subscription(256, 'FORTY_NINE', 'second');
SELECT billing_api.cancel_subscription(s.subscription_id, p_unused_time => 'CREDIT', p_as_of => '2027-04-01 00:00:01Z')
FROM billing_api.subscription AS s WHERE s.resource_ref = 'second';
SELECT is(
    (SELECT b.balance FROM billing_api.credit_balance AS b WHERE b.customer_id = 256), 4899::bigint, 'it is counted by the second'
);
-- At the very start the period goes, and all of its price comes back.
SELECT billing_test.customer('g');
SELECT billing_test.paid_subscription(320, 'FORTY_NINE', 'start');
SELECT billing_api.cancel_subscription(s.subscription_id, p_unused_time => 'CREDIT')
FROM billing_api.subscription AS s WHERE s.resource_ref = 'start';
SELECT is(
    (SELECT b.balance FROM billing_api.credit_balance AS b WHERE b.customer_id = 320), 4900::bigint, 'at the start all of it comes back'
);

-- In a trial nothing is paid, and past the last period nothing is left.
SELECT billing_test.customer('h');
SELECT billing_test.subscription(384, 'TRIAL', 'trial');
SELECT billing_test.paid_subscription(384, 'FORTY_NINE', 'late');
SELECT billing_api.cancel_subscription(s.subscription_id, p_unused_time => 'CREDIT', p_as_of => '2027-05-01Z')
FROM billing_api.subscription AS s WHERE s.customer_id = 384;
SELECT is_empty('SELECT * FROM billing.credit_entry AS e WHERE e.customer_id = 384', 'a trial, and time that is over, give no credit');

SELECT is_empty(
    $$SELECT b.customer_id FROM billing.credit_balance AS b
      WHERE b.balance <> (SELECT sum(e.amount) FROM billing.credit_entry AS e
                          WHERE e.customer_id = b.customer_id AND e.currency = b.currency)$$,
    'every balance is the sum of its ledger'
);

SELECT * FROM finish();
ROLLBACK;
