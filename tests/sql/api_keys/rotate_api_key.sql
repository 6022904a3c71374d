BEGIN;
SELECT plan(13);
SELECT billing_test.customer('c', p_token => NULL);
SELECT billing_ops.create_api_key('shop', sha256('one'), '{read}', 64, clock_timestamp() + interval '30 days');

SELECT results_eq(
    $$SELECT k.name, k.scopes, k.customer_id, k.replaces_api_key_id, k.expires_at > clock_timestamp() + interval '29 days'
      FROM billing_ops.rotate_api_key(64, sha256('two')) AS k$$,
    $$VALUES ('shop', '{read}'::text[], 64::bigint, 64::bigint, true)$$,
    'the new key has name, rights and end of the old one'
);
SELECT results_eq(
    $$SELECT k.api_key_id, k.status, k.rotated_at IS NOT NULL,
          k.expires_at BETWEEN clock_timestamp() + interval '23 hours 59 minutes' AND clock_timestamp() + interval '24 hours'
      FROM billing_ops.api_key AS k ORDER BY k.api_key_id$$,
    $$VALUES (64::bigint, 'ROTATED', true, true), (128, 'ACTIVE', false, false)$$,
    'the old one is taken for a day longer'
);
SELECT billing_ops.rotate_api_key(128, sha256('three'), '60 days');
SELECT cmp_ok(
    (SELECT k.expires_at FROM billing.api_key AS k WHERE k.api_key_id = 128), '<', clock_timestamp() + interval '31 days',
    'no overlap outlasts the end that a key had before'
);
SELECT billing_ops.rotate_api_key(192, sha256('four'), '0 seconds');
SELECT is(
    (SELECT k.status FROM billing_ops.api_key AS k WHERE k.api_key_id = 192), 'EXPIRED', 'without an overlap it ends at once'
);

SELECT billing_test.refuses(s.statement, s.sqlstate, s.description)
FROM (VALUES
    ($$SELECT billing_ops.rotate_api_key(64, sha256('x'))$$, 'SB361', 'a key that was rotated already'),
    ($$SELECT billing_ops.rotate_api_key(320, sha256('x'))$$, 'SB261', 'a key that is not there'),
    ($$SELECT billing_ops.rotate_api_key(NULL, sha256('x'))$$, 'SB261', 'no key'),
    ($$SELECT billing_ops.rotate_api_key(256, sha256('one'))$$, 'SB309', 'the hash of an older key'),
    ($$SELECT billing_ops.rotate_api_key(256, 'x')$$, 'SB101', 'what is no SHA-256'),
    ($$SELECT billing_ops.rotate_api_key(256, sha256('x'), '91 days')$$, 'SB101', 'an overlap without end'),
    ($$SELECT billing_ops.rotate_api_key(256, sha256('x'), NULL)$$, 'SB101', 'no overlap')
) AS s (statement, sqlstate, description);

SELECT billing_ops.revoke_api_key(256);
SELECT billing_test.refuses(
    $$SELECT billing_ops.rotate_api_key(256, sha256('x'))$$, 'SB361', 'a key that is revoked'
);
SELECT lives_ok(
    $$SELECT billing_ops.create_api_key('shop', sha256('five'), '{read}')$$, 'whose name is free again'
);

SELECT * FROM finish();
ROLLBACK;
