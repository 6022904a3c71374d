BEGIN;
SELECT plan(6);

SELECT is(billing.require_amount(0, 'p_amount', 0), 0::bigint, 'zero passes where it may be');
SELECT is(billing.require_amount(1000000000000000, 'p_amount', 1), 1000000000000000::bigint, '10^15 minor units pass');
SELECT throws_ok($$SELECT billing.require_amount(NULL, 'p_amount', 0)$$, 'SB101', NULL, 'NULL is refused');
SELECT throws_ok($$SELECT billing.require_amount(-1, 'p_amount', 0)$$, 'SB106', NULL, 'a negative amount is refused');
SELECT throws_ok($$SELECT billing.require_amount(0, 'p_amount', 1)$$, 'SB106', NULL, 'zero is refused where it must not be');
SELECT throws_ok(
    $$SELECT billing.require_amount(1000000000000001, 'p_amount', 0)$$, 'SB106', NULL, 'an absurd amount is refused'
);

SELECT * FROM finish();
ROLLBACK;
