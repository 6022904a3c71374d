-- Exact matching, rank, and what becomes of events that match nothing, or somebody else's.
BEGIN;
SELECT plan(27);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.gateway('other');
SELECT billing_test.plan();
CREATE FUNCTION pg_temp.hook(
    p_event_id text, p_outcome text, p_payment_id text, p_attempt_id bigint DEFAULT NULL, p_account text DEFAULT 'sim'
)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT billing_worker.receive_webhook(p_account, p_event_id, 'charge.' || lower(p_outcome), jsonb_strip_nulls(jsonb_build_object(
        'outcome', p_outcome, 'paymentId', p_payment_id, 'amount', 3000, 'currency', 'USD',
        'code', CASE p_outcome WHEN 'DECLINED' THEN 'insufficient_funds' END,
        'reference', (SELECT a.idempotency_key FROM billing.payment_attempt AS a WHERE a.attempt_id = p_attempt_id)
    )));
$function$;
CREATE FUNCTION pg_temp.became(p_event_id text)
RETURNS text
LANGUAGE sql
AS $function$
    UPDATE billing.webhook_event SET next_try_at = clock_timestamp() WHERE event_id = p_event_id;
    SELECT billing_worker.process_webhooks(50);
    SELECT w.status FROM billing.webhook_event AS w WHERE w.event_id = p_event_id;
$function$;
CREATE FUNCTION pg_temp.state(p_invoice_id bigint)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', i.status, i.amount_paid, s.status)
    FROM billing.invoice AS i INNER JOIN billing.subscription AS s USING (customer_id, subscription_id)
    WHERE i.invoice_id = p_invoice_id;
$function$;

-- It overtakes the answer (case G07); the same event again, and another event of the same payment (cases G01, G02).
SELECT billing_test.subscription(64, p_resource_ref => 'a', p_payment_behavior => 'PAY_FIRST');
SELECT is(billing_test.start('2027-05-01Z'), 64::bigint, 'a charge is on its way');
SELECT is(pg_temp.hook('e1', 'SUCCEEDED', 'p1', 64), 'STORED', 'its webhook is there before the answer');
SELECT is(pg_temp.became('e1'), 'APPLIED', 'and pays');
SELECT is(pg_temp.state(64), 'PAID 3000 ACTIVE', 'the invoice, which opens the subscription');
SELECT is(
    (SELECT r.verdict FROM billing_test.report(64, 'SUCCEEDED', '2027-05-01Z', p_payment_id => 'p1') AS r),
    'DUPLICATE', 'the answer comes and changes nothing'
);
SELECT is(pg_temp.hook('e1', 'SUCCEEDED', 'p1', 64), 'DUPLICATE', 'the event again is not stored again');
SELECT pg_temp.hook('e2', 'SUCCEEDED', 'p1');
SELECT is(pg_temp.became('e2'), 'DUPLICATE', 'another event of the same payment changes nothing');
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o WHERE o.event_type = 'InvoicePaid'), 1::bigint, 'it is told once'
);
SELECT is((SELECT count(*) FROM billing.webhook_event), 2::bigint, 'every event is kept');

-- A late failure of the first try, and one of the paid try (case G04).
SELECT billing_test.subscription(64, p_resource_ref => 'b');
SELECT billing_test.start('2027-05-01Z');
SELECT billing_test.report(128, 'DECLINED', '2027-05-01Z', 'insufficient_funds', p_payment_id => 'p2');
SELECT billing_api.retry_invoice(128);
SELECT billing_test.start('2027-05-01Z');
SELECT billing_test.report(192, 'SUCCEEDED', '2027-05-01Z', p_payment_id => 'p3');
SELECT is(pg_temp.state(128), 'PAID 3000 ACTIVE', 'declined, then paid');
SELECT pg_temp.hook('e3', 'DECLINED', 'p2');
SELECT is(pg_temp.became('e3'), 'DUPLICATE', 'the first failure comes late');
SELECT pg_temp.hook('e4', 'DECLINED', 'p3');
SELECT is(pg_temp.became('e4'), 'IGNORED', 'and an older failure of the paid one');
SELECT is(pg_temp.state(128), 'PAID 3000 ACTIVE', 'neither takes anything back');

-- An ended subscription is not revived (case G05).
SELECT billing_api.cancel_subscription(128);
SELECT pg_temp.hook('e5', 'SUCCEEDED', 'p3');
SELECT is(pg_temp.became('e5'), 'DUPLICATE', 'news of an ended subscription');
SELECT is(pg_temp.state(128), 'PAID 3000 CANCELED', 'revive nothing');
SELECT is(billing_api.has_access(64, 'b'), false, 'and give no access');

-- A payment of something else (case G09), then of something that comes about later (case G07).
SELECT pg_temp.hook('e6', 'SUCCEEDED', 'p9');
SELECT is(pg_temp.became('e6'), 'UNMATCHED', 'a payment that we do not know touches nothing');
SELECT billing_test.subscription(64, p_resource_ref => 'c');
SELECT billing_test.start('2027-05-01Z');
SELECT billing_worker.receive_webhook('sim', 'e7', 'charge.succeeded', jsonb_build_object(
    'outcome', 'SUCCEEDED', 'paymentId', 'p4', 'amount', 3000, 'currency', 'USD',
    'reference', (SELECT replace(a.idempotency_key, 'inv-192', 'inv-256') FROM billing.payment_attempt AS a WHERE a.invoice_id = 192)
));
SELECT is(pg_temp.became('e7'), 'UNMATCHED', 'one that is ahead of its attempt waits');
SELECT billing_test.subscription(64, p_resource_ref => 'd');
SELECT billing_test.start('2027-05-01Z');
SELECT is(pg_temp.became('e7'), 'APPLIED', 'and is matched once that is there');
SELECT is(pg_temp.state(256), 'PAID 3000 ACTIVE', 'which pays it once');
UPDATE billing.webhook_event SET received_wall_at = clock_timestamp() - interval '61 minutes' WHERE event_id = 'e6';
SELECT is(pg_temp.became('e6'), 'CASE', 'what matches nothing for an hour is laid before a person');
SELECT is((SELECT c.kind FROM billing_ops.open_cases AS c), 'UNMATCHED_WEBHOOK', 'as a case');

-- Of another account (case G11).
SELECT pg_temp.hook('e8', 'SUCCEEDED', 'p5', 256, 'other');
SELECT is(pg_temp.became('e8'), 'REJECTED', 'a payment of one account is not that of another');
SELECT is((SELECT i.status FROM billing.invoice AS i WHERE i.invoice_id = 192), 'OPEN', 'nothing moves');

-- Neither success nor failure: a reason to ask.
SELECT pg_temp.hook('e9', 'PROCESSING', 'p6', (SELECT a.attempt_id FROM billing.payment_attempt AS a WHERE a.invoice_id = 192));
SELECT is(pg_temp.became('e9'), 'LOOKUP', 'anything else is looked up');
SELECT is(
    (SELECT concat_ws(' ', a.status, a.next_lookup_at = billing.now())
     FROM billing.payment_attempt AS a WHERE a.invoice_id = 192), 'STARTED t',
    'and not applied itself'
);
SELECT is_empty($$SELECT * FROM billing_ops.check_integrity() WHERE severity = 'BROKEN'$$, 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
