BEGIN;
SELECT plan(10);
SELECT billing_test.customer('c', p_token => NULL);
SELECT billing_ops.create_api_key('shop', sha256('shop'), '{read,write}');
SELECT billing_ops.create_api_key('portal', sha256('portal'), '{read}', 64);
SELECT billing_ops.create_api_key('person', sha256('person'), '{read,operate}');

SELECT results_eq(
    $$SELECT a.key_name, a.is_allowed, a.role_name, a.actor, a.customer_scope
      FROM billing_worker.authenticate_api_key(sha256('shop'), 'write', 'req-1') AS a$$,
    $$VALUES ('shop', true, 'billing_app', 'req-1 shop', '')$$, 'an internal system'
);
SELECT results_eq(
    $$SELECT a.is_allowed, a.role_name, a.customer_scope
      FROM billing_worker.authenticate_api_key(sha256('portal'), 'read', 'r') AS a$$,
    $$VALUES (true, 'billing_app', '64')$$, 'one that is bound to a customer'
);
SELECT results_eq(
    $$SELECT a.is_allowed, a.role_name FROM billing_worker.authenticate_api_key(sha256('person'), 'read', 'r') AS a$$,
    $$VALUES (true, 'billing_operator')$$, 'whoever may operate reads as an operator too'
);
SELECT results_eq(
    $$SELECT a.is_allowed, a.role_name FROM billing_worker.authenticate_api_key(sha256('portal'), 'write', 'r') AS a$$,
    $$VALUES (false, 'billing_http')$$, 'who lacks the scope gets no rights'
);
SELECT results_eq(
    $$SELECT a.is_allowed FROM billing_worker.authenticate_api_key(sha256('shop'), NULL, 'r') AS a$$,
    $$VALUES (false)$$, 'nor does a call without a scope'
);
SELECT is_empty($$SELECT * FROM billing_worker.authenticate_api_key(sha256('x'), 'read', 'r')$$, 'an unknown key');
SELECT is_empty($$SELECT * FROM billing_worker.authenticate_api_key(NULL, 'read', 'r')$$, 'no key');
UPDATE billing.api_key SET expires_at = clock_timestamp() WHERE name = 'shop';
SELECT is_empty($$SELECT * FROM billing_worker.authenticate_api_key(sha256('shop'), 'read', 'r')$$, 'one that has ended');
SELECT lives_ok(
    $$SELECT billing_test.run_as('billing_http', 'SELECT billing_worker.authenticate_api_key(sha256(''x''), ''read'', ''r'')')$$,
    'the door may ask'
);
SELECT throws_ok(
    $$SELECT billing_test.run_as('billing_app', 'SELECT billing_worker.authenticate_api_key(sha256(''x''), ''read'', ''r'')')$$,
    '42501', NULL, 'an internal system may not try keys out'
);

SELECT * FROM finish();
ROLLBACK;
