BEGIN;
SELECT plan(24);
SELECT billing_test.clock('2027-01-31Z');

SELECT results_eq(
    $$SELECT a.code, a.adapter, a.mode, a.request_timeout, a.key_lifetime, a.confirm_success, a.created_at
      FROM billing_ops.create_gateway_account('main-eu', 'stripe', p_key_lifetime => '20 hours') AS a$$,
    $$VALUES ('main-eu', 'stripe', 'TEST', interval '30 seconds', interval '20 hours', false, '2027-01-31Z'::timestamptz)$$,
    'an account is made, with its limits as data'
);
SELECT results_eq(
    $$SELECT r.operation, r.per_second FROM billing_ops.set_gateway_rate('main-eu', 'charge', 200) AS r$$,
    $$VALUES ('charge', 200)$$, 'a rate is set'
);
SELECT is(r.per_second, 100, 'and changed') FROM billing_ops.set_gateway_rate('main-eu', 'charge', 100) AS r;
SELECT results_eq(
    $$SELECT m.currency, m.amount FROM billing_ops.set_gateway_minimum('main-eu', 'USD', 50) AS m$$,
    $$VALUES ('USD', 50::bigint)$$, 'a minimum is set'
);
SELECT is(m.amount, 30::bigint, 'and changed') FROM billing_ops.set_gateway_minimum('main-eu', 'USD', 30) AS m;

SELECT billing_test.refuses('SELECT billing_ops.' || s.call, s.sqlstate, s.description)
FROM (VALUES
    ($$create_gateway_account('main-eu', 'stripe')$$, 'SB309', 'a code that exists'),
    ($$create_gateway_account('Main EU', 'stripe')$$, 'SB101', 'a code with capitals and a space'),
    ($$create_gateway_account(NULL, 'stripe')$$, 'SB101', 'no code'),
    ($$create_gateway_account('x', NULL)$$, 'SB101', 'no adapter'),
    ($$create_gateway_account('x', 'a''; DROP')$$, 'SB101', 'SQL as an adapter'),
    ($$create_gateway_account('x', 'stripe', 'REAL')$$, 'SB101', 'an unknown mode'),
    ($$create_gateway_account('x', 'stripe', 'LIVE')$$, 'SB101', 'a LIVE account in a test database'),
    ($$create_gateway_account('x', 'stripe', p_request_timeout => '0 seconds')$$, 'SB101', 'a time-out of nothing'),
    ($$create_gateway_account('x', 'stripe', p_key_lifetime => NULL)$$, 'SB101', 'no life of keys'),
    ($$create_gateway_account('x', 'stripe', p_key_lifetime => '1 month')$$, 'SB101', 'a span whose length depends on the calendar'),
    ($$create_gateway_account('x', 'stripe', p_confirm_success => NULL)$$, 'SB101', 'neither confirming nor not'),
    ($$set_gateway_rate('nix', 'charge', 200)$$, 'SB206', 'a rate of an unknown account'),
    ($$set_gateway_rate('main-eu', 'sing', 200)$$, 'SB101', 'a rate of an unknown operation'),
    ($$set_gateway_rate('main-eu', 'charge', 1)$$, 'SB101', 'a rate too small to be kept'),
    ($$set_gateway_rate('main-eu', 'charge', NULL)$$, 'SB101', 'no rate'),
    ($$set_gateway_minimum('nix', 'USD', 50)$$, 'SB206', 'a minimum of an unknown account'),
    ($$set_gateway_minimum('main-eu', 'XXX', 50)$$, 'SB102', 'a minimum in an unknown currency'),
    ($$set_gateway_minimum('main-eu', 'USD', 0)$$, 'SB106', 'a minimum of nothing'),
    ($$set_gateway_minimum('main-eu', 'USD', NULL)$$, 'SB101', 'no minimum')
) AS s (call, sqlstate, description);

SELECT * FROM finish();
ROLLBACK;
