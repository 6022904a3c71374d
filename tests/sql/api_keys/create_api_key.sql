BEGIN;
SELECT plan(19);
SELECT billing_test.customer('c', p_token => NULL);

SELECT results_eq(
    $$SELECT k.name, k.status, k.scopes, k.customer_id, k.expires_at, k.created_by = session_user
      FROM billing_ops.create_api_key('shop', sha256('one'), '{write,read,write}') AS k$$,
    $$VALUES ('shop', 'ACTIVE', '{read,write}'::text[], NULL::bigint, NULL::timestamptz, true)$$,
    'a key is let in with its scopes, each once, by somebody who is named'
);
SELECT results_eq(
    $$SELECT k.customer_id, k.status
      FROM billing_ops.create_api_key('portal', sha256('two'), '{read}', 64, clock_timestamp() + interval '1 hour') AS k$$,
    $$VALUES (64::bigint, 'ACTIVE')$$, 'bound to a customer, and for an hour'
);
SELECT is(
    (SELECT k.key_hash FROM billing.api_key AS k WHERE k.name = 'shop'), sha256('one'), 'its hash is what is stored of it'
);
SELECT hasnt_column('billing_ops'::name, 'api_key'::name, 'key_hash'::name, 'and not shown');

SELECT billing_test.refuses(s.statement, s.sqlstate, s.description)
FROM (VALUES
    ($$SELECT billing_ops.create_api_key('shop', sha256('x'), '{read}')$$, 'SB309', 'a name that is taken'),
    ($$SELECT billing_ops.create_api_key('other', sha256('one'), '{read}')$$, 'SB309', 'a hash that is there'),
    ($$SELECT billing_ops.create_api_key('x', 'the key itself', '{read}')$$, 'SB101', 'what is no SHA-256'),
    ($$SELECT billing_ops.create_api_key('x', NULL, '{read}')$$, 'SB101', 'no hash'),
    ($$SELECT billing_ops.create_api_key('x', sha256('x'), '{}')$$, 'SB101', 'no scope'),
    ($$SELECT billing_ops.create_api_key('x', sha256('x'), NULL)$$, 'SB101', 'no scopes at all'),
    ($$SELECT billing_ops.create_api_key('x', sha256('x'), '{read,NULL}')$$, 'SB101', 'a scope that is NULL'),
    ($$SELECT billing_ops.create_api_key('x', sha256('x'), '{admin}')$$, 'SB101', 'a scope that nobody knows'),
    ($$SELECT billing_ops.create_api_key('x', sha256('x'), '{operate}', 64)$$, 'SB101', 'an operator who is bound'),
    ($$SELECT billing_ops.create_api_key('x', sha256('x'), '{read}', 65)$$, 'SB202', 'a customer who is not there'),
    ($$SELECT billing_ops.create_api_key('x y', sha256('x'), '{read}')$$, 'SB101', 'a name that is no code'),
    ($$SELECT billing_ops.create_api_key(NULL, sha256('x'), '{read}')$$, 'SB101', 'no name'),
    ($$SELECT billing_ops.create_api_key('x', sha256('x'), '{read}', NULL, clock_timestamp())$$, 'SB101', 'an end that is past'),
    ($$SELECT billing_ops.create_api_key('4111111111111111', sha256('x'), '{read}')$$, 'SB105', 'a card number as a name')
) AS s (statement, sqlstate, description);

SELECT billing_test.refuses(
    $$SELECT billing_ops.create_api_key('x', sha256('x'), '{read}')$$, '42501', 'nobody but an operator makes keys', 'billing_app'
);

SELECT * FROM finish();
ROLLBACK;
