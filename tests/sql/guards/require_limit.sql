BEGIN;
SELECT plan(6);

SELECT is(billing.require_limit(1), 1, '1 passes');
SELECT is(billing.require_limit(10000), 10000, '10000 passes');
SELECT throws_ok('SELECT billing.require_limit(NULL)', 'SB101', NULL, 'NULL is refused, since LIMIT NULL means no limit');
SELECT throws_ok('SELECT billing.require_limit(0)', 'SB101', NULL, '0 is refused');
SELECT throws_ok('SELECT billing.require_limit(-5)', 'SB101', NULL, 'a negative limit is refused');
SELECT throws_ok('SELECT billing.require_limit(10001)', 'SB101', NULL, '10001 is refused');

SELECT * FROM finish();
ROLLBACK;
