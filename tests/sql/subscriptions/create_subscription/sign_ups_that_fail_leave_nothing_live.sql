-- A11: four sign-ups fail, each in its own way; the fifth succeeds.
BEGIN;
SELECT plan(11);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c', p_token => 'tok_bad');
SELECT billing_test.plan();
CREATE FUNCTION pg_temp.sign_up(p_key text, p_quantity integer DEFAULT 1)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT s.status FROM billing_api.create_subscription(64, 'BASIC', p_key, p_quantity => p_quantity) AS s;
$function$;

-- 1: refused. 2: fails after everything was written. 3: declined, then begun anew on other terms. 4: declined and left.
SELECT billing_test.refuses($$SELECT billing_api.create_subscription(64, 'NONE', 'one')$$, 'SB203', 'an unknown plan leaves nothing');
CREATE FUNCTION pg_temp.fails() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION USING ERRCODE = '22012'; END$$;
CREATE TRIGGER fails AFTER INSERT ON billing.outbox_event FOR EACH ROW EXECUTE FUNCTION pg_temp.fails();
SELECT billing_test.refuses($$SELECT pg_temp.sign_up('two')$$, '22012', 'an error at the very end leaves nothing, not even the key');
DROP TRIGGER fails ON billing.outbox_event;
SELECT is(pg_temp.sign_up('two'), 'INCOMPLETE', 'so that its key is free for another try');
SELECT is(billing_test.collect('DECLINED', 'insufficient_funds'), 1, 'which is declined');
SELECT is(pg_temp.sign_up('three', 2), 'INCOMPLETE', 'other terms');
SELECT is(billing_test.collect('DECLINED', 'insufficient_funds'), 1, 'are declined too');
SELECT billing_ops.set_clock('2027-05-02Z');
SELECT is(billing_worker.expire_checkouts(10), 1, 'and forgotten, a day later');

SELECT billing_api.add_payment_method(64, 'sim', 'tok_good');
SELECT pg_temp.sign_up('five');
SELECT is(billing_test.collect(), 1, 'the fifth is paid, and nothing else is charged');
SELECT results_eq(
    $$SELECT s.status, i.status, i.amount_paid, i.next_attempt_at FROM billing.subscription AS s
      INNER JOIN billing.invoice AS i USING (customer_id, subscription_id) ORDER BY s.subscription_id$$,
    $$VALUES ('EXPIRED', 'VOID', 0::bigint, NULL::timestamptz), ('EXPIRED', 'VOID', 0, NULL), ('ACTIVE', 'PAID', 3000, NULL)$$,
    'one is active; what failed has expired, owes nothing, and nothing is planned for it'
);
SELECT is(
    billing_worker.renew_due(10, '2027-05-02Z') + billing_worker.expire_checkouts(10) + billing_worker.end_dunning(10), 0,
    'and no sweep finds anything to do'
);
SELECT is_empty('SELECT * FROM billing_ops.check_integrity()', 'every promise holds');
SELECT * FROM finish();
ROLLBACK;
