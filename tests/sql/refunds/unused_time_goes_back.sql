-- Cancelling with REFUND sends back the way the money came, once.
BEGIN;
SELECT plan(12);
SELECT billing_test.clock('2027-04-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64, p_resource_ref => 'a');

SELECT is(
    (SELECT s.status FROM billing_api.cancel_subscription(
        64, p_unused_time => 'REFUND', p_idempotency_key => 'k', p_as_of => '2027-04-16Z'
    ) AS s),
    'CANCELED', 'cancelled in the middle of April'
);
SELECT billing_api.cancel_subscription(64, p_unused_time => 'REFUND', p_idempotency_key => 'k', p_as_of => '2027-04-16Z');
SELECT is(
    billing_test.refunds(64), 'UNUSED_TIME REQUESTED 1500', 'half of 3000 goes back, once however often it is called'
);
SELECT is_empty('SELECT * FROM billing.credit_entry', 'and nothing becomes credit');
SELECT throws_ok(
    $$SELECT billing_api.refund_invoice(64, 1501, 'x')$$, 'SB330', NULL, 'it counts against what may be refunded'
);

-- 1000 of it was paid from credit: 2000 in money, 1500 unused.
SELECT billing_api.grant_credit(64, 1000, 'USD', 'gift', 'g');
SELECT billing_test.paid_subscription(64, p_resource_ref => 'b');
SELECT is(
    (SELECT concat_ws(' ', i.credit_applied, i.amount_paid) FROM billing_api.invoice AS i WHERE i.invoice_id = 128),
    '1000 2000', 'paid with both'
);
SELECT billing_api.refund_invoice(128, 1500, 'r', '2027-04-02Z');
SELECT billing_api.cancel_subscription(128, p_unused_time => 'REFUND', p_as_of => '2027-04-16Z');
SELECT is(
    billing_test.refunds(128), 'REQUESTED REQUESTED 1500, UNUSED_TIME REQUESTED 500', 'money goes back as far as there is any left'
);
SELECT is(
    (SELECT b.balance FROM billing_api.credit_balance AS b), 1000::bigint, 'and the rest of the unused time comes back as credit'
);
SELECT throws_ok(
    $$SELECT billing_api.refund_invoice(128, 1, 'y')$$, 'SB330', NULL, 'then all that was paid has been given back'
);

-- E10 the other way: as credit, called again and again.
SELECT billing_test.customer('d');
SELECT billing_test.paid_subscription(128, p_resource_ref => 'c');
SELECT is(
    (SELECT string_agg(DISTINCT c.status, ' ')
     FROM billing.subscription AS s
     CROSS JOIN generate_series(1, 4)
     CROSS JOIN LATERAL billing_api.cancel_subscription(
         s.subscription_id, p_unused_time => 'CREDIT', p_idempotency_key => 'k', p_as_of => '2027-04-16Z'
     ) AS c
     WHERE s.customer_id = 128),
    'CANCELED', 'E10: cancelled with CREDIT, four times over'
);
SELECT is(
    (SELECT b.balance FROM billing_api.credit_balance AS b WHERE b.customer_id = 128)
    || ' ' || (SELECT count(*) FROM billing.refund AS f WHERE f.customer_id = 128),
    '1500 0', 'E10: half of it is credit, once, and nothing goes back'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing');
SELECT is_empty('SELECT * FROM billing_ops.check_integrity()', 'every promise holds');
SELECT * FROM finish();
ROLLBACK;
