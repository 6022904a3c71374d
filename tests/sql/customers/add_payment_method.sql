BEGIN;
SELECT plan(38);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c', p_token => NULL);
SELECT billing_test.gateway();

SELECT results_eq(
    $$SELECT m.gateway_account, m.brand, m.last4, m.exp_month, m.exp_year, m.is_default, m.created_at
      FROM billing_api.add_payment_method(64, 'sim', 'tok_a', 'visa', '4242', 12, 2030, 'fp_a', p_idempotency_key => 'k') AS m$$,
    $$VALUES ('sim', 'visa', '4242', 12::smallint, 2030::smallint, true, '2027-01-31 10:30Z'::timestamptz)$$,
    'a method is stored, and is the default'
);
SELECT results_eq(
    $$SELECT m.payment_method_id, m.last4
      FROM billing_api.add_payment_method(64, 'sim', 'tok_a', 'visa', '4242', 12, 2030, 'fp_a', p_idempotency_key => 'k') AS m$$,
    $$VALUES (64::bigint, '4242')$$, 'the same key gets the stored answer'
);
SELECT ok(
    (SELECT k.response FROM billing.idempotency_key AS k) ?| '{brand,last4,exp_month,exp_year,token}' IS FALSE,
    'in which nothing of the card is stored'
);
SELECT results_eq(
    $$SELECT m.payment_method_id, m.is_default FROM billing_api.add_payment_method(64, 'sim', 'tok_b', p_make_default => false) AS m$$,
    $$VALUES (128::bigint, false)$$, 'another one need not become the default'
);
SELECT results_eq(
    $$SELECT m.payment_method_id, m.is_default FROM billing_api.add_payment_method(64, 'sim', 'tok_c') AS m$$,
    $$VALUES (192::bigint, true)$$, 'or does'
);
SELECT is(
    (SELECT count(*) FROM billing.payment_method AS m WHERE m.is_default), 1::bigint, 'and takes the place of the old default'
);

UPDATE billing.payment_method SET blocked_at = '2027-01-31Z', blocked_code = 'stolen_card' WHERE payment_method_id = 64;
SELECT results_eq(
    $$SELECT m.payment_method_id, m.blocked_code FROM billing_api.add_payment_method(64, 'sim', 'tok_a') AS m$$,
    $$VALUES (64::bigint, 'stolen_card')$$, 'the same token is the same method, and stays blocked'
);
SELECT results_eq(
    $$SELECT m.payment_method_id, m.blocked_code, m.last4, m.exp_year
      FROM billing_api.add_payment_method(64, 'sim', 'tok_a2', p_exp_month => 6, p_exp_year => 2033, p_fingerprint => 'fp_a') AS m$$,
    $$VALUES (64::bigint, NULL::text, '4242', 2033::smallint)$$,
    'the same fingerprint with another token is the same method too, and tried again'
);
SELECT is(
    (SELECT m.token FROM billing.payment_method AS m WHERE m.payment_method_id = 64), 'tok_a2', 'with the new token'
);
SELECT is((SELECT count(*) FROM billing.payment_method), 3::bigint, 'so that there are three methods');

-- What is owed becomes due with a new method: invoice 64 was declined and waits for its rung.
SELECT billing_test.plan();
SELECT billing_test.subscription(64);
SELECT is(billing_test.collect('DECLINED', 'insufficient_funds'), 1, 'a renewal is declined');
SELECT ok(
    (SELECT i.next_attempt_at > '2027-02-01 10:29Z' FROM billing.invoice AS i), 'and waits for its rung'
);
SELECT billing_test.gateway('other');
SELECT billing_api.add_payment_method(64, 'other', 'tok_d', p_make_default => false);
SELECT ok(
    (SELECT i.next_attempt_at > '2027-02-01 10:29Z' FROM billing.invoice AS i), 'a method that is not to pay it changes nothing'
);
SELECT billing_api.add_payment_method(64, 'other', 'tok_e');
SELECT results_eq(
    $$SELECT i.next_attempt_at, i.lane, i.gateway_account, i.failure_count
      FROM (SELECT v.*, o.lane FROM billing_api.invoice AS v INNER JOIN billing.invoice AS o USING (invoice_id)) AS i$$,
    $$VALUES ('2027-01-31 10:30Z'::timestamptz, 'INTERACTIVE', 'other', 1)$$,
    'a new default makes it due at once, through its own gateway account'
);
SELECT is((SELECT count(*) FROM billing_worker.start_attempts('other', 10, 'test')), 1::bigint, 'it is attempted');
SELECT billing_api.add_payment_method(64, 'sim', 'tok_f');
SELECT results_eq(
    $$SELECT i.gateway_account FROM billing_api.invoice AS i$$, $$VALUES ('other')$$,
    'while a charge is in flight a method is stored, but the invoice stays as it is'
);

SELECT billing_test.refuses(
    format('SELECT billing_api.add_payment_method(64, %L, %L)', 'sim', h.hostile_text), h.sqlstate, h.text_name || ' as a token'
)
FROM billing_test.hostile_texts() AS h;
SELECT billing_test.refuses(format('SELECT billing_api.add_payment_method(%s)', s.arguments), s.sqlstate, s.description)
FROM (VALUES
    ($$65, 'sim', 'tok_x'$$, 'SB202', 'an unknown customer'),
    ($$64, 'nix', 'tok_x'$$, 'SB206', 'an unknown gateway account'),
    ($$64, NULL, 'tok_x'$$, 'SB206', 'no gateway account'),
    ($$64, 'sim', 'tok_x', p_last4 => '42'$$, 'SB101', 'two digits for four'),
    ($$64, 'sim', 'tok_x', p_last4 => '4111111111111111'$$, 'SB101', 'a whole card number for four digits'),
    ($$64, 'sim', 'tok_x', p_brand => '4111111111111111'$$, 'SB105', 'a card number as a brand'),
    ($$64, 'sim', 'tok_x', p_fingerprint => '4111111111111111'$$, 'SB105', 'a card number as a fingerprint'),
    ($$64, 'sim', 'tok_x', p_exp_month => 13, p_exp_year => 2030$$, 'SB101', 'a thirteenth month'),
    ($$64, 'sim', 'tok_x', p_exp_month => 12$$, 'SB101', 'a month without a year'),
    ($$64, 'sim', 'tok_x', p_exp_month => 12, p_exp_year => 30$$, 'SB101', 'a year of two digits'),
    ($$64, 'sim', 'tok_x', p_make_default => NULL$$, 'SB101', 'neither default nor not'),
    ($$64, 'sim', 'tok_x', p_idempotency_key => 'k'$$, 'SB305', 'the key with another token'),
    ($$64, 'sim', 'tok_x', p_as_of => NULL$$, 'SB104', 'no p_as_of')
) AS s (arguments, sqlstate, description);

UPDATE billing.customer SET status = 'CLOSED';
SELECT billing_test.refuses(
    $$SELECT billing_api.add_payment_method(64, 'sim', 'tok_x')$$, 'SB314', 'a closed customer gets no method'
);

SELECT * FROM finish();
ROLLBACK;
