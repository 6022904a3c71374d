-- An invoice of its own: collected, dunned and given up like any other, and no subscription moves.
BEGIN;
SELECT plan(23);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64);
CREATE FUNCTION pg_temp.told()
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(e.event_type, ' ' ORDER BY e.aggregate_seq) FROM billing.outbox_event AS e
    WHERE e.aggregate_type = 'customer' AND e.aggregate_id = 64;
$function$;

SELECT throws_ok(
    $$SELECT billing_api.create_manual_invoice(64, 500, 'USD', 'Set-up')$$, 'SB101', NULL, 'it needs a key'
);
SELECT is(
    (SELECT concat_ws(' ', i.kind, i.status, i.total, i.amount_due, i.subscription_id)
     FROM billing_api.create_manual_invoice(64, 500, 'USD', 'Set-up', p_idempotency_key => 'm') AS i),
    'MANUAL OPEN 500 500', 'it is issued'
);
SELECT is(
    (SELECT count(*) FROM billing_api.create_manual_invoice(64, 500, 'USD', 'Set-up', p_idempotency_key => 'm')),
    1::bigint, 'the same key gets the same answer'
);
SELECT throws_ok(
    $$SELECT billing_api.create_manual_invoice(64, 501, 'USD', 'Set-up', p_idempotency_key => 'm')$$, 'SB305', NULL, 'for ever'
);
SELECT is(billing_test.collect(), 1, 'it is collected');
SELECT is((SELECT i.status FROM billing_api.invoice AS i WHERE i.invoice_id = 128), 'PAID', 'and paid');
SELECT is(pg_temp.told(), 'InvoiceOpened InvoicePaid', 'which is told of the customer');

SELECT billing_api.create_manual_invoice(64, 700, 'USD', 'Training', p_idempotency_key => 'n');
SELECT is(billing_test.collect('DECLINED', 'insufficient_funds'), 1, 'a decline');
SELECT is(
    (SELECT concat_ws(' ', i.status, i.failure_count, i.next_attempt_at >= '2027-05-02Z')
     FROM billing_api.invoice AS i WHERE i.invoice_id = 192),
    'OPEN 1 t', 'climbs the ladder'
);
SELECT is((SELECT s.status FROM billing_api.subscription AS s), 'ACTIVE', 'and moves no subscription');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', i.next_attempt_at) FROM billing.invoice AS i WHERE i.invoice_id = 192;
SELECT billing_test.collect('DECLINED', 'insufficient_funds', i.next_attempt_at) FROM billing.invoice AS i WHERE i.invoice_id = 192;
SELECT billing_test.collect('DECLINED', 'insufficient_funds', i.next_attempt_at) FROM billing.invoice AS i WHERE i.invoice_id = 192;
SELECT is(
    (SELECT concat_ws(' ', i.status, i.attempt_count) FROM billing_api.invoice AS i WHERE i.invoice_id = 192),
    'FAILED 4', 'the fourth failure gives it up'
);
SELECT is(
    pg_temp.told(),
    'InvoiceOpened InvoicePaid InvoiceOpened ' || repeat('InvoicePaymentFailed ', 4) || 'InvoiceFailed',
    'each step is told'
);
SELECT billing_ops.set_clock('2027-05-20Z');
SELECT billing_api.retry_invoice(192);
SELECT is(billing_test.collect(), 1, 'the customer pays it all the same');
SELECT is((SELECT i.status FROM billing_api.invoice AS i WHERE i.invoice_id = 192), 'PAID', 'it is paid');

-- Credit first, and what needs no call.
SELECT billing_api.grant_credit(64, 300, 'USD', 'gift', 'g');
SELECT is(
    (SELECT concat_ws(' ', i.status, i.credit_applied, i.amount_due)
     FROM billing_api.create_manual_invoice(64, 200, 'USD', 'Fee', p_idempotency_key => 'o') AS i),
    'PAID 200 0', 'credit pays what it can'
);
SELECT billing_api.create_manual_invoice(64, 150, 'USD', 'Fee', p_idempotency_key => 'p');
SELECT billing_api.grant_credit(64, 50, 'USD', 'gift', 'h');
SELECT is(billing_test.collect(), 0, 'credit that came later pays');
SELECT is((SELECT i.status FROM billing_api.invoice AS i WHERE i.invoice_id = 320), 'PAID', 'without a call');
SELECT billing_test.customer('d', p_token => NULL);
SELECT billing_api.create_manual_invoice(128, 150, 'USD', 'Fee', p_idempotency_key => 'p');
SELECT is(billing_test.collect(), 0, 'without a method there is no call');
SELECT is(
    (SELECT concat_ws(' ', i.status, i.failure_count) FROM billing_api.invoice AS i WHERE i.customer_id = 128), 'OPEN 1', 'but a rung'
);
SELECT is(
    (SELECT v.status FROM billing_api.invoice AS i, LATERAL billing_api.void_invoice(i.invoice_id) AS v WHERE i.customer_id = 128),
    'VOID', 'it can be forgiven'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.create_manual_invoice(64, 0, 'USD', 'x', p_idempotency_key => 'q')$$, 'SB106', 'nothing is no amount'
);
SELECT is_empty('SELECT * FROM billing_ops.check_integrity()', 'every promise holds');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing');
SELECT * FROM finish();
ROLLBACK;
