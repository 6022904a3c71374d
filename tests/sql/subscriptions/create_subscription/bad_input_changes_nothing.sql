BEGIN;
SELECT plan(51);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.customer('d');
SELECT billing_test.plan();
SELECT billing_test.plan('HUGE', 1000000000000000);
SELECT billing_test.plan('LATE');
SELECT billing_api.create_subscription(64, 'BASIC', 'used');

SELECT billing_test.refuses(format('SELECT billing_api.create_subscription(%s)', s.arguments), s.sqlstate, s.description)
FROM (VALUES
    ($$65, 'BASIC', 'k'$$, 'SB202', 'an unknown customer'),
    ($$NULL, 'BASIC', 'k'$$, 'SB202', 'no customer'),
    ($$64, 'NIX', 'k'$$, 'SB203', 'an unknown plan'),
    ($$64, NULL, 'k'$$, 'SB101', 'no plan'),
    ($$64, 'BASIC', NULL$$, 'SB101', 'no idempotency key'),
    ($$64, 'BASIC', ''$$, 'SB101', 'an empty idempotency key'),
    ($$64, 'BASIC', repeat('k', 256)$$, 'SB101', 'an idempotency key of 256 characters'),
    ($$64, 'BASIC', 'used', p_quantity => 2$$, 'SB305', 'a used key with another quantity'),
    ($$64, 'BASIC', 'used', 'other'$$, 'SB305', 'a used key with another resource'),
    ($$64, 'BASIC', 'k', p_quantity => 0$$, 'SB101', 'a quantity of zero'),
    ($$64, 'BASIC', 'k', p_quantity => -1$$, 'SB101', 'a negative quantity'),
    ($$64, 'BASIC', 'k', p_quantity => 1000001$$, 'SB101', 'a quantity beyond a million'),
    ($$64, 'BASIC', 'k', p_quantity => NULL$$, 'SB101', 'no quantity'),
    ($$64, 'HUGE', 'k', p_quantity => 2$$, 'SB106', 'a total beyond 10^15'),
    ($$64, 'BASIC', 'k', p_trial_days => -1$$, 'SB101', 'a trial of minus one day'),
    ($$64, 'BASIC', 'k', p_trial_days => 731$$, 'SB101', 'a trial of more than two years'),
    ($$64, 'BASIC', 'k', p_payment_behavior => 'FREE'$$, 'SB101', 'an unknown payment behavior'),
    ($$64, 'BASIC', 'k', p_payment_behavior => NULL$$, 'SB101', 'no payment behavior'),
    ($$64, 'BASIC', 'k', p_anchor_day => 0$$, 'SB101', 'day 0 of the month'),
    ($$64, 'BASIC', 'k', p_anchor_day => 32$$, 'SB101', 'day 32 of the month'),
    ($$64, 'BASIC', 'k', p_auto_renew => NULL$$, 'SB101', 'neither renewing nor not'),
    ($$64, 'BASIC', 'k', p_auto_renew => false, p_term_periods => 0$$, 'SB101', 'a term of no periods'),
    ($$64, 'BASIC', 'k', p_auto_renew => false, p_term_periods => 1201$$, 'SB101', 'a term of 1201 periods'),
    ($$64, 'BASIC', 'k', p_term_periods => 3$$, 'SB101', 'a term that renews by itself'),
    ($$64, 'BASIC', 'k', p_dunning_policy => 'nix'$$, 'SB207', 'an unknown dunning policy'),
    ($$64, 'BASIC', 'k', p_dunning_policy => NULL$$, 'SB101', 'no dunning policy'),
    ($$64, 'BASIC', 'k', p_payment_method_id => 128$$, 'SB205', 'the payment method of another customer'),
    ($$64, 'BASIC', 'k', p_payment_method_id => 1$$, 'SB205', 'an unknown payment method'),
    ($$64, 'BASIC', 'k', p_currency => 'EUR'$$, 'SB102', 'a currency without a price'),
    ($$64, 'BASIC', 'k', p_currency => 'XXX'$$, 'SB102', 'an unknown currency'),
    ($$64, 'BASIC', 'k', p_as_of => NULL$$, 'SB104', 'no p_as_of'),
    ($$64, 'BASIC', 'k', p_as_of => 'infinity'$$, 'SB104', 'an infinite p_as_of'),
    ($$64, 'LATE', 'k', p_as_of => '2027-01-31 10:29:59Z'$$, 'SB102', 'a plan before its first price')
) AS s (arguments, sqlstate, description);

SELECT billing_test.refuses(
    format('SELECT billing_api.create_subscription(64, %L, %L, %L)', 'BASIC', 'k', h.hostile_text), h.sqlstate,
    h.text_name || ' as a resource'
)
FROM billing_test.hostile_texts() AS h
WHERE h.text_name <> 'NULL';
SELECT billing_test.refuses(
    format('SELECT billing_api.create_subscription(64, %s)', s.arguments), s.sqlstate, s.description
)
FROM (VALUES
    ($$repeat('x', 10000000), 'k'$$, 'SB101', 'a plan of ten megabytes'),
    ($$'BASIC', repeat('x', 10000000)$$, 'SB101', 'a key of ten megabytes'),
    ($$'BASIC', 'k', p_currency => repeat('x', 10000000)$$, 'SB102', 'a currency of ten megabytes'),
    ($$'BASIC', 'k', p_payment_behavior => repeat('x', 10000000)$$, 'SB101', 'a payment behavior of ten megabytes'),
    ($$'BASIC', 'k', p_dunning_policy => repeat('x', 10000000)$$, 'SB101', 'a dunning policy of ten megabytes'),
    ($$'BASIC', '4111111111111111'$$, 'SB105', 'a card number as a key')
) AS s (arguments, sqlstate, description);

-- SQL in every text that is stored or compared.
SELECT lives_ok(
    format('SELECT billing_api.create_subscription(128, %L, %L, %L)', 'BASIC', billing_test.injection(), billing_test.injection()),
    'SQL as a key and as a resource is stored as it is'
);
SELECT is(
    (SELECT s.resource_ref FROM billing_api.subscription AS s WHERE s.customer_id = 128), billing_test.injection(),
    'letter by letter'
);
SELECT billing_test.refuses(
    format('SELECT billing_api.create_subscription(64, %L, %L)', billing_test.injection(), 'k'), 'SB203',
    'SQL as a plan is an unknown plan'
);
SELECT billing_test.refuses(
    format($$SELECT billing_api.create_subscription(64, 'BASIC', 'k', p_dunning_policy => %L)$$, billing_test.injection()),
    'SB207', 'SQL as a dunning policy is an unknown policy'
);
SELECT ok(to_regclass('billing.customer') IS NOT NULL, 'and the table is still there');

SELECT * FROM finish();
ROLLBACK;
