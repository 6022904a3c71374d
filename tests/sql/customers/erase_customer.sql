BEGIN;
SELECT plan(25);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.plan();
SELECT billing_test.gateway();
SELECT billing_api.create_customer('c', 'USD', 'UTC', 'a.person@example.com');
SELECT billing_api.add_payment_method(64, 'sim', 'tok_a', 'visa', '4242', 12, 2030, 'fp_1', true, 'card');
SELECT billing_test.paid_subscription(64);

SELECT billing_test.refuses('SELECT billing_api.erase_customer(65)', 'SB202', 'an unknown customer');
SELECT billing_test.refuses('SELECT billing_api.erase_customer(NULL)', 'SB202', 'no customer');
SELECT billing_test.refuses(
    'SELECT billing_api.erase_customer(64)', 'SB316', 'a live subscription', p_detail => 'subscription 64'
);
SELECT billing_api.cancel_subscription(64);
SELECT billing_api.create_manual_invoice(64, 500, 'USD', 'setup', p_idempotency_key => 'm');
SELECT billing_test.refuses('SELECT billing_api.erase_customer(64)', 'SB316', 'an open invoice', p_detail => 'invoice 128');
CREATE TEMPORARY TABLE attempt AS SELECT billing_test.start(billing.now()) AS id;
SELECT billing_test.refuses('SELECT billing_api.erase_customer(64)', 'SB316', 'a charge on its way', p_detail => 'invoice 128');
SELECT billing_test.report(a.id, 'DECLINED', billing.now(), 'do_not_honor') FROM attempt AS a;
SELECT billing_api.void_invoice(128);
SELECT billing_api.refund_invoice(64, 100, 'r');
SELECT billing_test.refuses(
    'SELECT billing_api.erase_customer(64)', 'SB316', 'money on its way back', p_detail => 'refund 64 of invoice 64'
);
SELECT results_eq('SELECT c.email FROM billing.customer_contact AS c', $$VALUES ('a.person@example.com')$$, 'until then nothing is gone');

SELECT billing_worker.start_refunds('sim', 10, 'w');
SELECT billing_test.settle_refund(64, 'SUCCEEDED');
CREATE TEMPORARY TABLE kept AS
SELECT (SELECT jsonb_agg(to_jsonb(i) ORDER BY i.invoice_id) FROM billing.invoice AS i) AS invoices,
       (SELECT jsonb_agg(to_jsonb(e) ORDER BY e.event_seq) FROM billing.subscription_event AS e) AS log,
       (SELECT jsonb_agg(to_jsonb(a) - 'payment_method_token' ORDER BY a.attempt_id) FROM billing.payment_attempt AS a) AS attempts;
SELECT is((SELECT c.status FROM billing_api.erase_customer(64, 'e') AS c), 'CLOSED', 'then it is closed');
SELECT is((SELECT c.status FROM billing_api.erase_customer(64, 'e') AS c), 'CLOSED', 'the same key gets the same answer');
SELECT is((SELECT c.status FROM billing_api.erase_customer(64) AS c), 'CLOSED', 'a second time changes nothing');

SELECT is_empty('SELECT c.email FROM billing.customer_contact AS c', 'the contact is gone');
SELECT results_eq(
    'SELECT m.token, m.brand, m.last4, m.exp_month, m.exp_year, m.fingerprint, m.is_default, m.removed_at FROM billing.payment_method AS m',
    $$VALUES ('erased', NULL::text, NULL::text, NULL::smallint, NULL::smallint, NULL::text, false, '2027-01-31 10:30Z'::timestamptz)$$,
    'so is the card'
);
SELECT results_eq(
    'SELECT DISTINCT a.payment_method_token FROM billing.payment_attempt AS a', $$VALUES ('erased')$$,
    'and its token, where it was sent too'
);
SELECT results_eq(
    'SELECT k.operation FROM billing.idempotency_key AS k WHERE k.customer_id = 64', $$VALUES ('erase_customer')$$,
    'and the answers that show it'
);
SELECT is(
    (SELECT jsonb_agg(to_jsonb(i) ORDER BY i.invoice_id) FROM billing.invoice AS i), (SELECT k.invoices FROM kept AS k),
    'invoices stay as they are'
);
SELECT is(
    (SELECT jsonb_agg(to_jsonb(e) ORDER BY e.event_seq) FROM billing.subscription_event AS e), (SELECT k.log FROM kept AS k), 'and the log'
);
SELECT is(
    (SELECT jsonb_agg(to_jsonb(a) - 'payment_method_token' ORDER BY a.attempt_id) FROM billing.payment_attempt AS a),
    (SELECT k.attempts FROM kept AS k), 'and the payments'
);
SELECT is_empty('SELECT * FROM billing_ops.check_integrity()', 'which are sound');

SELECT billing_test.refuses(s.call, 'SB314', s.description)
FROM (VALUES
    ($$SELECT billing_api.create_subscription(64, 'BASIC', 'k')$$, 'nothing is sold to it any more'),
    ($$SELECT billing_api.add_payment_method(64, 'sim', 'tok_b')$$, 'no card is taken'),
    ($$SELECT billing_api.grant_credit(64, 5, 'USD', 'r', 'g')$$, 'no credit is given'),
    ($$SELECT billing_api.create_manual_invoice(64, 5, 'USD', 'x', p_idempotency_key => 'n')$$, 'nothing is billed')
) AS s (call, description);
SELECT is(billing_api.has_access(64), false, 'it has no access');
SELECT throws_ok(
    $$UPDATE billing.payment_attempt SET payment_method_token = 'other'$$, 'SB901', NULL, 'and nothing else may rewrite what was sent'
);
SELECT throws_ok(
    $$UPDATE billing.payment_attempt SET payment_method_token = 'erased', amount = 1$$, 'SB901', NULL, 'nor anything beside it'
);

SELECT * FROM finish();
ROLLBACK;
