-- Never more than was paid, refunds on their way included.
BEGIN;
SELECT plan(29);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64);

SELECT throws_ok('SELECT billing_api.refund_invoice(64)', 'SB101', NULL, 'it needs a key');
SELECT is(
    (SELECT concat_ws(' ', r.purpose, r.status, r.amount, r.currency, r.gateway_payment_id)
     FROM billing_api.refund_invoice(64, 2999, 'a') AS r),
    'REQUESTED REQUESTED 2999 USD pay_64', '2999 of 3000'
);
SELECT matches(
    (SELECT r.idempotency_key FROM billing_api.refund AS r), '^[a-z0-9]+-inv-64-refund-1$', 'its key names invoice and number'
);
SELECT is(
    (SELECT count(*) FROM billing_api.refund_invoice(64, 2999, 'a') AS r), 1::bigint, 'the same key gets the same answer'
);
SELECT is((SELECT count(*) FROM billing_api.refund AS r), 1::bigint, 'and no second refund');
SELECT billing_test.refuses(
    $$SELECT billing_api.refund_invoice(64, 3000, 'b')$$, 'SB330', 'then not 3000', p_detail => '1'
);
SELECT is((SELECT r.amount FROM billing_api.refund_invoice(64, 1, 'c') AS r), 1::bigint, 'but 1');
SELECT billing_test.refuses(
    $$SELECT billing_api.refund_invoice(64, NULL, 'd')$$, 'SB330', 'and nothing more', p_detail => '0'
);
SELECT billing_test.refuses($$SELECT billing_api.refund_invoice(64, 0, 'd')$$, 'SB106', 'zero is no amount');

SELECT throws_like(
    $$SELECT billing_worker.settle_refunds(ARRAY[
        ROW(64, 64, 1, 'UNKNOWN', NULL, NULL, NULL, NULL, NULL, 'LOOKUP')::billing.refund_result, NULL
    ])$$,
    'result 2, %', 'a result that is none is named by its place'
);

-- Sent, answered, told.
SELECT is(
    (SELECT array_agg(q.amount ORDER BY q.refund_id) FROM billing_worker.start_refunds('sim', 10, 'w') AS q),
    '{2999,1}', 'both are sent'
);
SELECT is((SELECT count(*) FROM billing_worker.start_refunds('sim', 10, 'w')), 0::bigint, 'once');
SELECT is((SELECT s.verdict FROM billing_test.settle_refund(64, 'SUCCEEDED') AS s), 'APPLIED', 'the money went');
SELECT is(
    (SELECT s.verdict FROM billing_test.settle_refund(64, 'SUCCEEDED', p_source => 'WEBHOOK') AS s),
    'DUPLICATE', 'said again it changes nothing'
);
SELECT is((SELECT i.amount_refunded FROM billing.invoice AS i), 2999::bigint, 'the invoice knows');
SELECT is(billing_test.published(64) LIKE '%RefundIssued', true, 'the world is told');
SELECT is((SELECT i.status FROM billing_api.invoice AS i), 'PAID', 'the invoice stays paid');

-- Refused for good: a case, and it may be asked for again.
SELECT is(
    (SELECT s.refund_status FROM billing_test.settle_refund(128, 'DECLINED', p_code => 'charge_disputed') AS s), 'FAILED', 'refused'
);
SELECT is(
    (SELECT concat_ws(' ', c.kind, c.amount, c.refund_id) FROM billing_ops.open_cases AS c),
    'REFUND_FAILED 1 128', 'a person has to look at it'
);
SELECT is(
    (SELECT r.amount FROM billing_api.refund_invoice(64, NULL, 'e') AS r), 1::bigint, 'what did not go may be asked for again'
);
SELECT is(
    (SELECT s.verdict FROM billing_test.settle_refund(192, 'SUCCEEDED', p_source => 'WEBHOOK', p_gateway_refund_id => 'ref_64') AS s),
    'REJECTED', 'one refund there is not two here'
);
SELECT is(
    (SELECT s.verdict FROM billing_test.settle_refund(192, 'SUCCEEDED', p_source => 'WEBHOOK', p_amount => 2) AS s),
    'REJECTED', 'nor is another amount'
);
SELECT is(
    (SELECT c.resolution FROM billing_ops.open_cases AS o,
     LATERAL billing_ops.resolve_case(o.case_id, 'sent by hand', 'REFUNDED', 'ref_by_hand') AS c WHERE o.kind = 'REFUND_MISMATCH'),
    'REFUNDED: sent by hand', 'a person decides'
);
SELECT is(
    billing_test.refunds(64), 'REQUESTED SUCCEEDED 2999, REQUESTED FAILED 1, REQUESTED SUCCEEDED 1', 'and that is how it ended'
);
SELECT is((SELECT i.amount_refunded FROM billing.invoice AS i), 3000::bigint, 'all of it');
SELECT throws_ok(
    $$UPDATE billing.refund SET amount = 5 WHERE refund_id = 64$$, 'SB901', NULL, 'what was asked never changes'
);
SELECT throws_ok($$DELETE FROM billing.refund$$, NULL, NULL, 'nor goes away');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing');
SELECT is_empty('SELECT * FROM billing_ops.check_integrity()', 'every promise holds');
SELECT * FROM finish();
ROLLBACK;
