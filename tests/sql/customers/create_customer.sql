BEGIN;
SELECT plan(24);
SELECT billing_test.clock('2027-01-31 10:30:45Z');

SELECT results_eq(
    $$SELECT c.* FROM billing_api.create_customer('shop-1', 'EUR', 'Europe/Berlin', 'jane@example.com', 'k') AS c$$,
    $$VALUES (64::bigint, 'shop-1', 'ACTIVE', 'EUR', 'Europe/Berlin', '2027-01-31 10:30:45Z'::timestamptz)$$,
    'a customer is made'
);
SELECT results_eq(
    'SELECT customer_id, email FROM billing.customer_contact', $$VALUES (64::bigint, 'jane@example.com')$$,
    'the address stands in a table of its own'
);
SELECT is(
    (SELECT c.customer_id FROM billing_api.create_customer('shop-1', 'EUR', 'Europe/Berlin', 'jane@example.com', 'k') AS c),
    64::bigint, 'the same key gets the stored answer'
);
SELECT ok(
    (SELECT k.response::text || k.request_hash FROM billing.idempotency_key AS k) NOT LIKE '%jane%',
    'the stored answer holds no personal data'
);
SELECT results_eq(
    $$SELECT c.currency, c.time_zone FROM billing_api.create_customer('shop-2', 'USD') AS c$$,
    $$VALUES ('USD', 'UTC')$$, 'without a time zone it is UTC'
);
SELECT is((SELECT count(*) FROM billing.customer_contact), 1::bigint, 'without an address none is stored');
SELECT is(
    (SELECT c.external_ref FROM billing_api.create_customer(billing_test.injection(), 'USD') AS c), billing_test.injection(),
    'a name like SQL is stored as it is'
);

SELECT billing_test.refuses(
    $$SELECT billing_api.create_customer('shop-1', 'EUR')$$, 'SB309', 'a name that exists; its id stands in DETAIL',
    p_detail => '64'
);
SELECT billing_test.refuses(
    format('SELECT billing_api.create_customer(%L, %L)', h.hostile_text, 'USD'), h.sqlstate, h.text_name || ' as a name'
)
FROM billing_test.hostile_texts() AS h;
SELECT billing_test.refuses(format('SELECT billing_api.create_customer(%s)', s.arguments), s.sqlstate, s.description)
FROM (VALUES
    ($$'new', 'XXX'$$, 'SB102', 'an unknown currency'),
    ($$'new', NULL$$, 'SB101', 'no currency'),
    ($$'new', 'USD', 'Europe/Atlantis'$$, 'SB103', 'an unknown time zone'),
    ($$'new', 'USD', NULL$$, 'SB101', 'no time zone'),
    ($$'new', 'USD', 'UTC', 'no address'$$, 'SB101', 'an address that is none'),
    ($$'new', 'USD', 'UTC', repeat('x', 10000000) || '@example.com'$$, 'SB101', 'an address of ten megabytes'),
    ($$'shop-1', 'USD', 'Europe/Berlin', 'jane@example.com', 'k'$$, 'SB305', 'the key with another currency'),
    ($$'new', 'USD', p_as_of => 'infinity'$$, 'SB104', 'an infinite p_as_of')
) AS s (arguments, sqlstate, description);

SELECT * FROM finish();
ROLLBACK;
