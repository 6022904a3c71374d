BEGIN;
SELECT plan(3);

SELECT is(
    billing.term_end(billing.first_period('UTC', NULL, '1 month', '2027-01-31Z'), 'UTC', '1 month', 3),
    '2027-04-30Z'::timestamptz, 'three periods from 31 January end on 30 April'
);
SELECT is(
    billing.term_end(billing.first_period('UTC', 1, '1 month', '2027-02-15Z'), 'UTC', '1 month', 3),
    '2027-05-01Z'::timestamptz, 'a stub counts as the first of the periods'
);
SELECT is(
    billing.term_end(billing.first_period('UTC', NULL, '1 month', '2027-01-31Z'), 'UTC', '1 month', NULL),
    NULL, 'without a term there is no end'
);

SELECT * FROM finish();
ROLLBACK;
