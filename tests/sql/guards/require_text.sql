BEGIN;
SELECT plan(14);

SELECT is(billing.require_text('Plan & Co. #7', 'p_name', 20), 'Plan & Co. #7', 'a plain text is returned as it is');
SELECT is(billing.require_text(repeat('x', 20), 'p_name', 20), repeat('x', 20), 'the longest text passes');
SELECT is(
    billing.require_text(billing_test.injection(), 'p_name', 100), billing_test.injection(),
    'SQL is a text like any other'
);
SELECT is(
    billing.require_text(U&'Z\00FCrich \6771\4EAC', 'p_name', 20), U&'Z\00FCrich \6771\4EAC', 'letters of the world pass'
);
SELECT is(
    billing.require_text('order 1234567890123456', 'p_name', 40), 'order 1234567890123456',
    'sixteen digits that are no card number pass'
);

SELECT throws_ok(
    format('SELECT billing.require_text(%L, %L, 100)', h.hostile_text, 'p_name'), h.sqlstate, NULL, h.text_name || ' is refused'
)
FROM billing_test.hostile_texts() AS h;

SELECT throws_like(
    $$SELECT billing.require_text('4111111111111111', 'p_name', 100)$$, 'p_name looks like a card number',
    'a refused card number is not repeated'
);

SELECT * FROM finish();
ROLLBACK;
