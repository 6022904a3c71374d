BEGIN;
SELECT plan(15);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c', p_token => 'tok_a');
SELECT billing_api.add_payment_method(64, 'sim', 'tok_b');
SELECT billing_api.add_payment_method(64, 'sim', 'tok_c');

SELECT results_eq(
    'SELECT m.payment_method_id, m.is_default FROM billing_api.remove_payment_method(64, 64) AS m',
    'VALUES (192::bigint, true)', 'removing another than the default leaves the default'
);
SELECT results_eq(
    $$SELECT m.payment_method_id, m.is_default FROM billing_api.remove_payment_method(64, 192, 'k') AS m$$,
    'VALUES (128::bigint, true)', 'the newest that remains takes the place of a removed default'
);
SELECT results_eq(
    $$SELECT m.payment_method_id, m.is_default FROM billing_api.remove_payment_method(64, 192, 'k') AS m$$,
    'VALUES (128::bigint, true)', 'the same key gets the stored answer'
);
SELECT billing_test.refuses(
    'SELECT billing_api.remove_payment_method(64, 192)', 'SB205', 'a removed method is no method any more'
);
SELECT results_eq(
    $$SELECT m.removed_at FROM billing_api.payment_method AS m WHERE m.payment_method_id = 192$$,
    $$VALUES ('2027-01-31 10:30Z'::timestamptz)$$, 'its row stays for the attempts that used it'
);

SELECT billing_test.plan();
SELECT billing_test.subscription(64, p_resource_ref => 'checkout', p_payment_behavior => 'PAY_FIRST');
SELECT lives_ok('SELECT billing_api.remove_payment_method(64, 128)', 'an open checkout is no debt');
SELECT is_empty(
    $$SELECT m.payment_method_id FROM billing_api.payment_method AS m WHERE m.is_default$$, 'without a method there is no default'
);
SELECT is((SELECT i.gateway_account FROM billing_api.invoice AS i), NULL, 'and no account to collect through');

SELECT billing_api.add_payment_method(64, 'sim', 'tok_d');
SELECT billing_test.subscription(64, p_resource_ref => 'granted');
SELECT billing_test.refuses(
    'SELECT billing_api.remove_payment_method(64, 256)', 'SB311', 'the last method stays while money is owed'
);
SELECT billing_api.add_payment_method(64, 'sim', 'tok_e', p_make_default => false);
SELECT is((SELECT count(*) FROM billing_worker.start_attempts('sim', 10, 'test')), 2::bigint, 'two charges are in flight');
SELECT billing_test.refuses(
    'SELECT billing_api.remove_payment_method(64, 256)', 'SB311', 'the method that they use stays'
);
SELECT results_eq(
    'SELECT m.payment_method_id FROM billing_api.remove_payment_method(64, 320) AS m', 'VALUES (256::bigint)',
    'another one can be removed meanwhile'
);

SELECT billing_test.refuses(format('SELECT billing_api.remove_payment_method(%s)', s.arguments), s.sqlstate, s.description)
FROM (VALUES
    ('65, 256', 'SB202', 'an unknown customer'),
    ('64, NULL', 'SB205', 'no method'),
    ($$64, 256, 'k'$$, 'SB305', 'the key with another method')
) AS s (arguments, sqlstate, description);

SELECT * FROM finish();
ROLLBACK;
