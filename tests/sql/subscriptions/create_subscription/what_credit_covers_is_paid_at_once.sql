BEGIN;
SELECT plan(13);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.plan('FREE', 0);
SELECT billing_api.grant_credit(64, 5000, 'USD', 'gift', 'g');

SELECT results_eq(
    $$SELECT s.status, s.current_period_start, s.current_period_end, s.version
      FROM billing_api.create_subscription(64, 'BASIC', 'k1', 'one') AS s$$,
    $$VALUES ('ACTIVE', '2027-01-31 10:30Z'::timestamptz, '2027-02-28 10:30Z'::timestamptz, 2::bigint)$$,
    'a checkout that credit covers is ACTIVE at once'
);
SELECT results_eq(
    'SELECT i.status, i.total, i.credit_applied, i.amount_due, i.paid_at, i.next_attempt_at FROM billing_api.invoice AS i',
    $$VALUES ('PAID', 3000::bigint, 3000::bigint, 0::bigint, '2027-01-31 10:30Z'::timestamptz, NULL::timestamptz)$$,
    'its invoice is PAID without a gateway'
);
SELECT results_eq(
    $$SELECT e.event_seq, e.event_type, e.from_status, e.to_status FROM billing.subscription_event AS e ORDER BY e.event_seq$$,
    $$VALUES (1::bigint, 'SubscriptionCreated', NULL, 'INCOMPLETE'), (2, 'InvoiceOpened', NULL, NULL),
      (3, 'InvoicePaid', NULL, NULL), (4, 'SubscriptionActivated', 'INCOMPLETE', 'ACTIVE')$$,
    'the log tells each step'
);
SELECT results_eq(
    $$SELECT o.aggregate_seq, o.payload ->> 'status' FROM billing.outbox_event AS o
      WHERE o.aggregate_type = 'subscription' ORDER BY o.aggregate_seq$$,
    $$VALUES (1::bigint, 'ACTIVE'), (2, 'PAID'), (3, 'PAID'), (4, 'ACTIVE')$$, 'and the world sees how it ended'
);
SELECT results_eq(
    'SELECT p.kind, p.invoice_id, p.opened_seq FROM billing.subscription_period AS p', $$VALUES ('BILLED', 64::bigint, 4::bigint)$$,
    'the period is opened by the activation'
);
SELECT results_eq(
    'SELECT e.kind, e.amount, e.balance_after, e.invoice_id FROM billing.credit_entry AS e ORDER BY e.entry_seq',
    $$VALUES ('GRANTED', 5000::bigint, 5000::bigint, NULL::bigint), ('DRAWN', -3000, 2000, 64)$$, 'the credit is drawn'
);
SELECT is((SELECT s.event_seq FROM billing.subscription AS s), 4::bigint, 'the subscription counts four events');

SELECT is(s.status, 'INCOMPLETE', 'what credit covers in part waits for the rest')
FROM billing_api.create_subscription(64, 'BASIC', 'k2', 'two') AS s;
SELECT results_eq(
    $$SELECT i.status, i.credit_applied, i.amount_due FROM billing_api.invoice AS i WHERE i.status = 'OPEN'$$,
    $$VALUES ('OPEN', 2000::bigint, 1000::bigint)$$, 'and only the rest is due'
);
SELECT is((SELECT b.balance FROM billing_api.credit_balance AS b), 0::bigint, 'credit is used up');
SELECT billing_api.create_subscription(64, 'FREE', 'k3', 'three');
SELECT results_eq(
    $$SELECT s.status, i.status, i.total FROM billing_api.subscription AS s
      INNER JOIN billing_api.invoice AS i USING (subscription_id) WHERE s.resource_ref = 'three'$$,
    $$VALUES ('ACTIVE', 'PAID', 0::bigint)$$, 'a free plan is ACTIVE at once'
);

-- Another sign-up on other terms voids the open checkout: what it drew comes back and is drawn again.
SELECT billing_api.create_subscription(64, 'BASIC', 'k4', 'two', p_quantity => 2);
SELECT results_eq(
    $$SELECT i.credit_applied, i.amount_due FROM billing_api.invoice AS i WHERE i.status = 'OPEN'$$,
    $$VALUES (2000::bigint, 4000::bigint)$$, 'a restarted checkout draws what the first one gave back'
);
SELECT is(
    (SELECT sum(e.amount) FROM billing.credit_entry AS e), 0::numeric, 'so that ledger and balance agree'
);

SELECT * FROM finish();
ROLLBACK;
