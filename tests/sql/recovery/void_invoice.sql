-- Forgiven: covered, recovered, never billed again, credit back once.
BEGIN;
SELECT plan(29);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();

SELECT billing_test.subscription(64);
SELECT billing_test.collect('DECLINED', 'insufficient_funds');
SELECT is((SELECT v.status FROM billing_api.void_invoice(64, 'v') AS v), 'VOID', 'an open invoice is forgiven');
SELECT is((SELECT s.status FROM billing_api.subscription AS s), 'ACTIVE', 'nothing is owed any more, so it recovers');
SELECT is(billing_test.published(64) LIKE '%InvoiceVoided SubscriptionRecovered', true, 'both are told');
SELECT isnt((SELECT i.forgiven_by FROM billing.invoice AS i), NULL, 'who did it stands there');
SELECT is((SELECT v.status FROM billing_api.void_invoice(64, 'v') AS v), 'VOID', 'the same key gets the same answer');
SELECT billing_test.refuses('SELECT billing_api.void_invoice(64)', 'SB307', 'once is enough', p_detail => 'VOID');
SELECT is(billing_api.has_access(64), true, 'the period counts as covered');
SELECT is(billing_worker.renew_due(10, '2027-06-01Z'), 1, 'the next period is billed');
SELECT is(
    (SELECT count(*) FROM billing.invoice AS i WHERE i.period_start = '2027-05-01Z'), 1::bigint, 'the forgiven one is not billed again'
);
SELECT throws_ok(
    $$INSERT INTO billing.invoice (customer_id, subscription_id, resource_id, kind, currency, total, period_start,
      period_end, opens_period, drives_status, lane, issued_at)
      VALUES (64, 64, 64, 'RENEWAL', 'USD', 1, '2027-05-01Z', '2027-06-01Z', true, true, 'BACKLOG', '2027-05-01Z')$$,
    '23505', NULL, 'it cannot even be stored'
);

-- Credit 5000 pays 3000; voided, 5000 are back, once.
SELECT billing_test.customer('d');
SELECT billing_api.grant_credit(128, 5000, 'USD', 'gift', 'g');
SELECT billing_test.subscription(128);
SELECT is((SELECT i.status FROM billing_api.invoice AS i WHERE i.customer_id = 128), 'PAID', 'credit pays it');
SELECT is(
    (SELECT v.status FROM billing_api.invoice AS i, LATERAL billing_api.void_invoice(i.invoice_id) AS v WHERE i.customer_id = 128),
    'VOID', 'what credit alone has paid can be voided'
);
SELECT is((SELECT b.balance FROM billing_api.credit_balance AS b), 5000::bigint, 'the credit is back');
SELECT throws_ok(
    'SELECT billing_api.void_invoice(i.invoice_id) FROM billing_api.invoice AS i WHERE i.customer_id = 128',
    'SB307', NULL, 'a second time changes nothing'
);
SELECT is((SELECT b.balance FROM billing_api.credit_balance AS b), 5000::bigint, 'once');
SELECT is(
    (SELECT concat_ws(' ', m.status, m.credit_applied, m.amount_due)
     FROM billing_api.create_manual_invoice(128, 3000, 'USD', 'May, issued anew', p_idempotency_key => 'anew') AS m),
    'PAID 3000 0', 'H11: issued anew, by hand, it is paid with the same credit'
);
SELECT is((SELECT b.balance FROM billing_api.credit_balance AS b), 2000::bigint, 'H11: of which 2000 are left');

-- Paid with money: only a refund gives it back, and while that is on its way nothing else does.
SELECT billing_test.customer('e');
SELECT billing_test.paid_subscription(192);
CREATE TEMPORARY TABLE paid AS SELECT i.invoice_id FROM billing_api.invoice AS i WHERE i.customer_id = 192;
SELECT throws_ok(
    'SELECT billing_api.void_invoice(p.invoice_id) FROM paid AS p', 'SB307', NULL, 'what was paid with money is not voided'
);
SELECT is(
    (SELECT r.status FROM paid AS p, LATERAL billing_api.refund_invoice(p.invoice_id, NULL, 'r') AS r), 'REQUESTED', 'it is refunded'
);
SELECT throws_ok(
    'SELECT billing_api.void_invoice(p.invoice_id) FROM paid AS p', 'SB331', NULL, 'nor voided while the refund is on its way'
);
SELECT billing_worker.start_refunds('sim', 10, 'w');
SELECT billing_test.settle_refund(f.refund_id, 'SUCCEEDED') FROM billing.refund AS f;
SELECT throws_ok('SELECT billing_api.void_invoice(p.invoice_id) FROM paid AS p', 'SB307', NULL, 'H16: nor once it has gone');
SELECT is(
    (SELECT i.amount_refunded || ' ' || (SELECT count(*) FROM billing_api.credit_balance AS b WHERE b.customer_id = 192)
     FROM billing.invoice AS i INNER JOIN paid AS p USING (invoice_id)),
    '3000 0', 'H16: the customer gets 3000, once'
);

-- A checkout has nothing to forgive.
SELECT billing_test.customer('f');
SELECT billing_test.subscription(256, p_payment_behavior => 'PAY_FIRST');
SELECT throws_ok(
    'SELECT billing_api.void_invoice(i.invoice_id) FROM billing_api.invoice AS i WHERE i.customer_id = 256',
    'SB303', NULL, 'a checkout is cancelled instead'
);

-- The debt of an ended subscription.
SELECT billing_test.customer('g');
SELECT billing_test.subscription(320, p_dunning_policy => 'store_grace');
SELECT billing_test.collect('DECLINED', 'stolen_card');
SELECT billing_ops.set_clock('2027-06-01Z');
SELECT billing_test.collect() FROM generate_series(1, 4);
SELECT billing_worker.end_dunning(10);
SELECT is((SELECT i.status FROM billing_api.invoice AS i WHERE i.customer_id = 320), 'FAILED', 'a debt');
SELECT billing_api.void_invoice(i.invoice_id) FROM billing_api.invoice AS i WHERE i.customer_id = 320;
SELECT is((SELECT i.status FROM billing_api.invoice AS i WHERE i.customer_id = 320), 'VOID', 'is forgiven');
SELECT is(
    (SELECT r.suspended_by_billing_at FROM billing_api.resource AS r WHERE r.customer_id = 320), NULL, 'and the suspension lifted'
);
SELECT is(
    (SELECT s.status FROM billing_api.subscription AS s WHERE s.customer_id = 320), 'EXPIRED', 'nothing is revived'
);

SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing');
SELECT is_empty($$SELECT * FROM billing_ops.check_integrity() WHERE severity = 'BROKEN'$$, 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
