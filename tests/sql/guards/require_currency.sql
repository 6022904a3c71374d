BEGIN;
SELECT plan(10);

SELECT is(billing.require_currency('JPY'), 'JPY', 'an active ISO 4217 code passes');
SELECT throws_ok($$SELECT billing.require_currency('XXX')$$, 'SB102', NULL, 'an unknown currency is refused');
SELECT throws_ok($$SELECT billing.require_currency('usd')$$, 'SB102', NULL, 'small letters are refused');
SELECT throws_ok($$SELECT billing.require_currency(NULL)$$, 'SB101', NULL, 'no currency is refused');
SELECT throws_like(
    $$SELECT billing.require_currency(repeat('USD', 1000000))$$, '"' || repeat('USD', 21) || 'U" is no currency known here',
    'of three megabytes 64 letters are repeated'
);
SELECT is(billing.require_time_zone('Europe/Berlin'), 'Europe/Berlin', 'an IANA zone passes');
SELECT throws_ok($$SELECT billing.require_time_zone('Europe/Atlantis')$$, 'SB103', NULL, 'an unknown zone is refused');
SELECT throws_ok($$SELECT billing.require_time_zone('+02:00')$$, 'SB103', NULL, 'an offset is no zone');
SELECT throws_ok($$SELECT billing.require_time_zone(NULL)$$, 'SB101', NULL, 'no zone is refused');
SELECT throws_ok(
    format('SELECT billing.require_time_zone(%L)', billing_test.injection()), 'SB103', NULL, 'SQL is no zone'
);

SELECT * FROM finish();
ROLLBACK;
