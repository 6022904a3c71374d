-- Two tries share an intent, and both times the customer fails the authentication: no payment, and no key of ours. The event
-- says no more than the intent; what a look-up finds while a try waits for its customer is about that try alone.
BEGIN;
SELECT plan(23);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
CREATE FUNCTION pg_temp.hook(p_event_id text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT billing_worker.receive_webhook('sim', p_event_id, 'payment_intent.payment_failed', '{"intentId": "pi_1"}');
    SELECT billing_worker.process_webhooks(50);
    SELECT w.status FROM billing.webhook_event AS w WHERE w.event_id = p_event_id;
$function$;
CREATE FUNCTION pg_temp.ask()
RETURNS text
LANGUAGE sql
RETURN (
    SELECT string_agg(concat_ws(' ', right(q.idempotency_key, 5), q.gateway_intent_id, q.awaits_action), ', ')
    FROM billing_worker.attempts_to_look_up('sim', 10) AS q
);
CREATE FUNCTION pg_temp.tries()
RETURNS text
LANGUAGE sql
RETURN (SELECT string_agg(concat_ws(' ', a.status, a.decline_code), ', ' ORDER BY a.attempt_no) FROM billing.payment_attempt AS a);

-- The first try: the look-up settles it at once.
SELECT billing_test.subscription(64, p_payment_behavior => 'PAY_FIRST');
SELECT billing_test.start('2027-05-01Z');
SELECT billing_test.report(64, 'REQUIRES_ACTION', '2027-05-01Z', p_action_expires_at => '2027-05-01T23:00:00Z');
SELECT billing_worker.keep_intents(ARRAY[ROW(64, 64, 'pi_1')::billing.attempt_intent]);
SELECT is(pg_temp.hook('e1'), 'LOOKUP', 'news of the intent is a reason to ask');
SELECT is(pg_temp.ask(), 'try-1 t', 'about the try that waits for its customer');
SELECT billing_test.report(64, 'DECLINED', '2027-05-01Z', p_code => 'payment_intent_authentication_failure', p_source => 'LOOKUP');
SELECT is(pg_temp.tries(), 'DECLINED payment_intent_authentication_failure', 'it is settled long before its action expires');

-- The second one. News of the first comes while it is being sent, while it waits, and once it has ended.
SELECT billing_api.retry_invoice(64);
SELECT is(
    (SELECT concat_ws(' ', q.gateway_intent_id, q.awaits_action) FROM billing_worker.start_attempts('sim', 10, 'w') AS q), 'pi_1 f',
    'the second try confirms the same intent, and is not known to have done so'
);
SELECT is(pg_temp.hook('e2'), 'LOOKUP', 'late news of the first, while the second is under way');
SELECT is(pg_temp.ask(), NULL, 'waits for the answer to that');
SELECT is(pg_temp.tries(), 'DECLINED payment_intent_authentication_failure, STARTED', 'it settles nothing');
SELECT billing_test.report(128, 'REQUIRES_ACTION', '2027-05-01Z', p_action_expires_at => '2027-05-01T23:00:00Z');
SELECT is(pg_temp.ask(), 'try-2 pi_1 t', 'and has the intent asked about once the answer is there');
SELECT billing_test.report(128, 'REQUIRES_ACTION', '2027-05-01Z', p_source => 'LOOKUP');
SELECT is(pg_temp.hook('e3'), 'LOOKUP', 'late news of the first, while the customer of the second acts');
SELECT is(pg_temp.ask(), 'try-2 pi_1 t', 'the intent is asked about, for the second try');
SELECT billing_test.report(128, 'REQUIRES_ACTION', '2027-05-01Z', p_source => 'LOOKUP');
SELECT is(
    pg_temp.tries(), 'DECLINED payment_intent_authentication_failure, REQUIRES_ACTION', 'which goes on, since it is being acted on'
);
SELECT is(
    (SELECT a.next_lookup_at FROM billing.payment_attempt AS a WHERE a.attempt_no = 2), '2027-05-01T23:00:00Z'::timestamptz,
    'for as long as before'
);
SELECT is(pg_temp.hook('e4'), 'LOOKUP', 'the customer fails');
SELECT is(pg_temp.hook('e5'), 'LOOKUP', 'told twice');
SELECT is(pg_temp.ask(), 'try-2 pi_1 t', 'asked once');
SELECT billing_test.report(128, 'DECLINED', '2027-05-01Z', p_code => 'payment_intent_authentication_failure', p_source => 'LOOKUP');
SELECT is(
    pg_temp.tries(), 'DECLINED payment_intent_authentication_failure, DECLINED payment_intent_authentication_failure', 'it is settled'
);
SELECT is(pg_temp.hook('e6'), 'IGNORED', 'told once more it is nothing');
SELECT is(
    (SELECT concat_ws(' ', i.status, i.attempt_count, s.status)
     FROM billing.invoice AS i INNER JOIN billing.subscription AS s USING (customer_id, subscription_id)),
    'OPEN 2 INCOMPLETE', 'the checkout may be tried again'
);

-- A repeated send may get the answer that the first one got.
SELECT billing_api.retry_invoice(64);
SELECT billing_worker.start_attempts('sim', 10, 'w');
SELECT billing_test.report(192, 'UNKNOWN', '2027-05-01Z');
SELECT billing_worker.attempts_to_look_up('sim', 10, '2027-05-01T00:00:30Z');
SELECT billing_test.report(192, 'UNKNOWN', '2027-05-01T00:00:30Z', p_source => 'LOOKUP');
SELECT billing_worker.attempts_to_look_up('sim', 10, '2027-05-01T00:02:30Z');
SELECT billing_test.report(192, 'UNKNOWN', '2027-05-01T00:02:30Z', p_source => 'LOOKUP');
SELECT billing_test.clock('2027-05-01T00:15:00Z');
SELECT is((SELECT q.send_no FROM billing_worker.start_attempts('sim', 10, 'w') AS q), 2, 'the third try is sent twice');
SELECT billing_test.report(192, 'REQUIRES_ACTION', '2027-05-01T00:15:00Z', p_action_expires_at => '2027-05-01T23:00:00Z');
SELECT is(pg_temp.ask(), 'try-3 pi_1 t', 'what it says of an action may be long past, and is asked about at once');
SELECT billing_test.report(192, 'REQUIRES_ACTION', '2027-05-01T00:15:00Z', p_source => 'LOOKUP');
SELECT is(pg_temp.ask(), NULL, 'once');
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o WHERE o.event_type = 'InvoiceActionRequired'), 3::bigint,
    'the customer was told to act once a try'
);
SELECT is_empty($$SELECT * FROM billing_test.broken()$$, 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
