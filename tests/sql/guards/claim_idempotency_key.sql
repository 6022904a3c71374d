BEGIN;
SELECT plan(15);
SELECT billing_test.clock('2027-01-31Z');

SELECT is(
    billing.claim_idempotency_key(64, 'op', 'k', '{"a": 1, "b": 2}', false, '2027-01-31Z'), NULL,
    'the first call goes on'
);
SELECT throws_ok(
    $$SELECT billing.claim_idempotency_key(64, 'op', 'k', '{"a": 1, "b": 2}', false, '2027-01-31Z')$$, 'SB901', NULL,
    'a key without its answer is a broken invariant'
);
SELECT billing.store_response(64, 'op', 'k', '{"answer": 42}');
SELECT is(
    billing.claim_idempotency_key(64, 'op', 'k', '{"b": 2, "a": 1}', false, '2027-02-14Z'), '{"answer": 42}'::jsonb,
    'the same arguments in another order get the stored answer'
);
SELECT throws_ok(
    $$SELECT billing.claim_idempotency_key(64, 'op', 'k', '{"a": 2, "b": 2}', false, '2027-01-31Z')$$, 'SB305', NULL,
    'other arguments are refused'
);
SELECT is(
    billing.claim_idempotency_key(128, 'op', 'k', '{"a": 2}', false, '2027-01-31Z'), NULL,
    'another customer may use the same key'
);
SELECT is(
    billing.claim_idempotency_key(64, 'other', 'k', '{"a": 2}', false, '2027-01-31Z'), NULL,
    'another operation may use the same key'
);
SELECT is(
    billing.claim_idempotency_key(64, 'op', NULL, '{"a": 2}', false, '2027-01-31Z'), NULL, 'without a key a call goes on'
);
SELECT lives_ok($$SELECT billing.store_response(64, 'op', NULL, '{}')$$, 'without a key nothing is stored');
SELECT throws_ok(
    $$SELECT billing.store_response(64, 'op', 'never claimed', '{}')$$, 'SB901', NULL, 'an answer needs a claimed key'
);
SELECT throws_ok(
    $$SELECT billing.claim_idempotency_key(64, 'op', '4242424242424242', '{}', false, '2027-01-31Z')$$, 'SB105', NULL,
    'a key that might be a card number is refused'
);
SELECT is(
    billing.claim_idempotency_key(64, 'op', 'k4242424242424242', '{}', false, '2027-01-31Z'), NULL,
    'with a letter before it, as the error advises, it is a key'
);
SELECT throws_ok(
    $$SELECT billing.claim_idempotency_key(64, 'op', repeat('k', 256), '{}', false, '2027-01-31Z')$$, 'SB101', NULL,
    'a key of 256 characters is refused'
);
SELECT throws_ok(
    $$SELECT billing.claim_idempotency_key(64, 'op', '', '{}', false, '2027-01-31Z')$$, 'SB101', NULL,
    'an empty key is refused'
);
SELECT is(
    billing.claim_idempotency_key(64, 'op', billing_test.injection(), '{}', false, '2027-01-31Z'), NULL,
    'SQL is a key like any other'
);
SELECT is(
    (SELECT count(*) FROM billing.idempotency_key WHERE created_at = '2027-01-31Z' AND NOT keep_for_ever), 5::bigint,
    'each key stores the business time of its first call'
);

SELECT * FROM finish();
ROLLBACK;
