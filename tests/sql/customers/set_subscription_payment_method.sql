BEGIN;
SELECT plan(14);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c', p_token => 'tok_a');
SELECT billing_test.gateway('other');
SELECT billing_api.add_payment_method(64, 'other', 'tok_b', p_make_default => false);
SELECT billing_test.plan();
SELECT billing_test.subscription(64);
SELECT billing_test.collect('DECLINED', 'insufficient_funds');

SELECT results_eq(
    $$SELECT s.payment_method_id, s.version - b.version
      FROM billing.subscription AS b,
           billing_api.set_subscription_payment_method(64, 128, b.version, 'k') AS s$$,
    'VALUES (128::bigint, 1::bigint)', 'a subscription can be paid with another method than the default'
);
SELECT results_eq(
    $$SELECT v.next_attempt_at, v.gateway_account FROM billing_api.invoice AS v$$,
    $$VALUES ('2027-01-31 10:30Z'::timestamptz, 'other')$$, 'its open invoice becomes due at once, through the other account'
);
SELECT results_eq(
    $$SELECT e.event_type, e.detail, e.event_seq = s.event_seq
      FROM billing.subscription_event AS e INNER JOIN billing.subscription AS s USING (subscription_id)
      ORDER BY e.event_seq DESC LIMIT 1$$,
    $$VALUES ('PaymentMethodChosen', '{"paymentMethodId": 128}'::jsonb, true)$$, 'the log says so'
);
SELECT is(
    (SELECT s.payment_method_id FROM billing_api.set_subscription_payment_method(64, 128, 1, 'k') AS s), 128::bigint,
    'the same key gets the stored answer, before the version is looked at'
);
CREATE TEMPORARY TABLE before AS SELECT version, event_seq FROM billing.subscription;
SELECT billing_api.set_subscription_payment_method(64, 128);
SELECT results_eq(
    'SELECT version, event_seq FROM billing.subscription', 'TABLE before', 'the same method again changes nothing'
);
SELECT is(
    (SELECT s.payment_method_id FROM billing_api.set_subscription_payment_method(64, NULL) AS s), NULL,
    'NULL goes back to the default'
);
SELECT is((SELECT i.gateway_account FROM billing_api.invoice AS i), 'sim', 'and to its account');

SELECT billing_test.customer('other', p_token => 'tok_x');
SELECT billing_test.refuses(
    format('SELECT billing_api.set_subscription_payment_method(%s)', s.arguments), s.sqlstate, s.description
)
FROM (VALUES
    ('64, 192', 'SB205', 'a method of another customer'),
    ('65, 128', 'SB201', 'an unknown subscription'),
    ('NULL, 128', 'SB201', 'no subscription'),
    ('64, 128, 1', 'SB304', 'another version than expected'),
    ($$64, NULL, p_idempotency_key => 'k'$$, 'SB305', 'the key with another method'),
    ($$64, 128, p_as_of => '-infinity'$$, 'SB104', 'no finite p_as_of')
) AS s (arguments, sqlstate, description);
SELECT billing_api.cancel_subscription(64);
SELECT billing_test.refuses(
    'SELECT billing_api.set_subscription_payment_method(64, 128)', 'SB302', 'what has ended is paid no more'
);

SELECT * FROM finish();
ROLLBACK;
