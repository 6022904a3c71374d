-- What a customer does at the gateway himself bears no key of ours: the intent says which invoice it is about.
BEGIN;
SELECT plan(11);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.gateway('other');
SELECT billing_test.plan();
CREATE FUNCTION pg_temp.hook(p_event_id text, p_payload jsonb, p_account text DEFAULT 'sim')
RETURNS text
LANGUAGE sql
AS $function$
    SELECT billing_worker.receive_webhook(p_account, p_event_id, 'charge.succeeded', p_payload);
    SELECT billing_worker.process_webhooks(50);
    SELECT w.status FROM billing.webhook_event AS w WHERE w.event_id = p_event_id;
$function$;
CREATE FUNCTION pg_temp.paid(p_intent_id text, p_payment_id text)
RETURNS jsonb
LANGUAGE sql
RETURN jsonb_build_object(
    'outcome', 'SUCCEEDED', 'paymentId', p_payment_id, 'intentId', p_intent_id, 'amount', 3000, 'currency', 'USD'
);

SELECT billing_test.subscription(64, p_payment_behavior => 'PAY_FIRST');
SELECT billing_test.start('2027-05-01Z');
SELECT billing_test.report(64, 'REQUIRES_ACTION', '2027-05-01Z', p_action_expires_at => '2027-05-01T01:00:00Z');
SELECT billing_worker.keep_intents(ARRAY[ROW(64, 64, 'pi_1')::billing.attempt_intent]);

SELECT is(pg_temp.hook('e1', pg_temp.paid('pi_2', 'ch_1')), 'UNMATCHED', 'another intent is about something else');
SELECT is(pg_temp.hook('e2', pg_temp.paid('pi_1', 'ch_1'), 'other'), 'UNMATCHED', 'so is that of another account');
SELECT is(
    (SELECT a.next_lookup_at FROM billing.payment_attempt AS a WHERE a.attempt_id = 64), '2027-05-01T01:00:00Z',
    'while the action is open, nobody asks'
);
SELECT is(pg_temp.hook('e3', pg_temp.paid('pi_1', 'ch_1')), 'LOOKUP', 'news of its intent is a reason to ask');
SELECT is(
    (SELECT concat_ws(' ', a.status, a.next_lookup_at = '2027-05-01Z') FROM billing.payment_attempt AS a WHERE a.attempt_id = 64),
    'REQUIRES_ACTION t', 'at once, and nothing else'
);

-- The action expires, and is completed all the same.
SELECT billing_test.clock('2027-05-01T02:00:00Z');
SELECT billing_test.report(64, 'REQUIRES_ACTION', '2027-05-01T02:00:00Z', p_source => 'LOOKUP');
SELECT is(
    (SELECT a.status FROM billing.payment_attempt AS a WHERE a.attempt_id = 64), 'DECLINED', 'too late is a decline'
);
SELECT is(
    pg_temp.hook('e4', '{"intentId": "pi_1", "outcome": "DECLINED", "code": "x", "paymentId": "ch_1"}'),
    'IGNORED', 'news of an ended attempt that is no money is nothing'
);
SELECT is(pg_temp.hook('e5', pg_temp.paid('pi_1', 'ch_1')), 'APPLIED', 'money is recorded whenever it comes');
SELECT is(
    (SELECT concat_ws(' ', a.status, a.gateway_payment_id, a.captured_amount) FROM billing.payment_attempt AS a WHERE a.attempt_id = 64),
    'SUCCEEDED ch_1 3000', 'on the attempt that it was taken for'
);
SELECT is(pg_temp.hook('e6', pg_temp.paid('pi_1', 'ch_1')), 'DUPLICATE', 'once');
SELECT is_empty($$SELECT * FROM billing_test.broken()$$, 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
