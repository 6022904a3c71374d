BEGIN;
SELECT plan(7);

SELECT is(billing.prorated_amount(200000, 1, 1296000, 2592000), 100000::bigint, 'half of 30 days of 200000 is 100000');
SELECT is(billing.prorated_amount(4900, 1, 1728000, 2592000), 3266::bigint, '20 of 30 days of 49.00 are 32.66');
SELECT is(billing.prorated_amount(9900, 1, 1728000, 2592000), 6600::bigint, '20 of 30 days of 99.00 are 66.00');
SELECT is(billing.prorated_amount(10000, 1, 518400, 2678400), 1935::bigint, '6 of 31 days of 10000 yen are 1935');
SELECT is(
    billing.prorated_amount(5000000000000, 1, 1296000, 2592000), 2500000000000::bigint,
    'price times seconds beyond bigint does not overflow'
);
-- 999999997056001 - 999999997056001 / 2592000 = 999999611253532.9999996...; a quotient of numeric shows 16 digits.
SELECT is(
    billing.prorated_amount(999999997056001, 1, 2591999, 2592000), 999999611253532::bigint,
    'a remainder of almost one is cut, not rounded'
);
SELECT is(billing.prorated_amount(1000, 7, 2592000, 2592000), 7000::bigint, 'all of a period costs its price');

SELECT * FROM finish();
ROLLBACK;
