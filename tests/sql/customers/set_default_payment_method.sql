BEGIN;
SELECT plan(10);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c', p_token => 'tok_a');
SELECT billing_api.add_payment_method(64, 'sim', 'tok_b');
SELECT billing_test.plan();
SELECT billing_test.subscription(64);
SELECT billing_test.collect('DECLINED', 'insufficient_funds');

SELECT results_eq(
    $$SELECT m.payment_method_id, m.is_default FROM billing_api.set_default_payment_method(64, 128) AS m$$,
    $$VALUES (128::bigint, true)$$, 'what is the default already stays so'
);
SELECT ok((SELECT i.next_attempt_at > billing.now() FROM billing.invoice AS i), 'and nothing becomes due');
SELECT results_eq(
    $$SELECT m.payment_method_id, m.is_default FROM billing_api.set_default_payment_method(64, 64, 'k') AS m$$,
    $$VALUES (64::bigint, true)$$, 'another method becomes the default'
);
SELECT results_eq(
    $$SELECT i.next_attempt_at, i.lane FROM billing.invoice AS i$$,
    $$VALUES ('2027-01-31 10:30Z'::timestamptz, 'INTERACTIVE')$$, 'and what it is to pay becomes due at once'
);
SELECT billing_api.set_default_payment_method(64, 128);
SELECT results_eq(
    $$SELECT m.payment_method_id, m.is_default FROM billing_api.set_default_payment_method(64, 64, 'k') AS m$$,
    $$VALUES (64::bigint, true)$$, 'the same key gets the stored answer'
);
SELECT is(
    (SELECT m.payment_method_id FROM billing_api.payment_method AS m WHERE m.is_default), 128::bigint, 'and changes nothing'
);

SELECT billing_test.customer('other', p_token => 'tok_x');
SELECT billing_test.refuses(
    format('SELECT billing_api.set_default_payment_method(%s)', s.arguments), s.sqlstate, s.description
)
FROM (VALUES
    ('64, 192', 'SB205', 'a method of another customer'),
    ('64, NULL', 'SB205', 'no method'),
    ('65, 64', 'SB202', 'an unknown customer'),
    ($$64, 128, 'k'$$, 'SB305', 'the key with another method')
) AS s (arguments, sqlstate, description);

SELECT * FROM finish();
ROLLBACK;
