BEGIN;
SELECT plan(5);
SELECT billing_ops.create_api_key('shop', sha256('one'), '{read}');

SELECT results_eq(
    $$SELECT k.status, k.revoked_by = session_user FROM billing_ops.revoke_api_key(64) AS k$$,
    $$VALUES ('REVOKED', true)$$, 'a key is refused from now on, by somebody who is named'
);
CREATE TEMPORARY TABLE first_time AS SELECT k.revoked_at FROM billing.api_key AS k;
SELECT lives_ok($$SELECT billing_ops.revoke_api_key(64)$$, 'again does no harm');
SELECT results_eq(
    $$SELECT k.revoked_at FROM billing.api_key AS k$$, $$SELECT f.revoked_at FROM first_time AS f$$,
    'and changes nothing of when it was'
);
SELECT is_empty(
    $$SELECT * FROM billing_worker.authenticate_api_key(sha256('one'), 'read', 'r')$$, 'nobody is let in with it'
);
SELECT billing_test.refuses($$SELECT billing_ops.revoke_api_key(128)$$, 'SB261', 'a key that is not there');

SELECT * FROM finish();
ROLLBACK;
