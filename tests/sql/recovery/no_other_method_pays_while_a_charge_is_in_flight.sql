-- A12: the first charge is at one gateway; the customer wants to pay through another.
BEGIN;
SELECT plan(14);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.gateway('second');
SELECT billing_test.subscription(64);
CREATE TEMPORARY TABLE sent AS SELECT billing_test.start('2027-05-01Z') AS id;

SELECT is(
    (SELECT m.payment_method_id FROM billing_api.add_payment_method(64, 'second', 'tok_second') AS m), 128::bigint,
    'a method may be stored at any time'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.start_attempts('second', 10, 'w', '2027-05-20Z')), 0::bigint,
    'but is not charged meanwhile, although it is the default now'
);
SELECT billing_test.refuses('SELECT billing_api.retry_invoice(64, 128)', 'SB306', 'nor when it is asked for', p_detail => 'STARTED');
SELECT billing_test.report(s.id, 'UNKNOWN', '2027-05-01Z', 'timeout') FROM sent AS s;
SELECT billing_test.refuses(
    'SELECT billing_api.retry_invoice(64, 128)', 'SB306', 'nor while the outcome of the first is unknown', p_detail => 'UNKNOWN'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.start_attempts('second', 10, 'w', '2027-05-20Z')), 0::bigint, 'still it is not charged by itself'
);
SELECT throws_like(
    $$INSERT INTO billing.payment_attempt
      SELECT (jsonb_populate_record(a, jsonb_build_object('attempt_id', 6400, 'attempt_no', 2, 'idempotency_key', 'another'))).*
      FROM billing.payment_attempt AS a$$,
    '%"at_most_one_open_attempt_per_invoice"%', 'the database itself refuses a second open attempt'
);

-- After a decline it works.
SELECT billing_test.report(s.id, 'DECLINED', '2027-05-01 00:01Z', 'insufficient_funds', 'LOOKUP') FROM sent AS s;
SELECT lives_ok('SELECT billing_api.retry_invoice(64, 128)', 'after a decline of the first it may be asked for');
SELECT is(
    (SELECT concat_ws(' ', q.payment_method_token, q.amount) FROM billing_worker.start_attempts('second', 10, 'w') AS q), 'tok_second 3000',
    'and is charged through its own gateway'
);
SELECT is(billing_test.start('2027-05-01Z', 'sim'), NULL, 'the first gateway is not called again');
SELECT is(
    (SELECT string_agg(a.attempt_no || ' ' || a.status, ', ' ORDER BY a.attempt_no) FROM billing.payment_attempt AS a),
    '1 DECLINED, 2 STARTED', 'by a second try'
);

-- After a success there is nothing to pay.
SELECT billing_test.subscription(64, p_resource_ref => 'b');
SELECT billing_test.start('2027-05-01Z', 'second');
SELECT billing_test.refuses('SELECT billing_api.retry_invoice(128, 64)', 'SB306', 'the other way round too', p_detail => 'STARTED');
SELECT billing_test.report(a.attempt_id, 'SUCCEEDED', '2027-05-01 00:01Z', p_payment_id => 'p', p_amount => 3000)
FROM billing.payment_attempt AS a WHERE a.invoice_id = 128;
SELECT billing_test.refuses(
    'SELECT billing_api.retry_invoice(128, 64)', 'SB307', 'after a success it is paid already', p_detail => 'PAID'
);
SELECT is(
    (SELECT i.amount_paid || ' ' || i.attempt_count FROM billing.invoice AS i WHERE i.invoice_id = 128), '3000 1', 'once, by one attempt'
);
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
