-- The protocol of a charge: look up first, the same request again, never by age.
BEGIN;
SELECT plan(27);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64);
SELECT billing_api.refund_invoice(64, 98, 'a');
CREATE FUNCTION pg_temp.state(p_refund_id bigint)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', f.status, 'send', to_char(f.next_send_at AT TIME ZONE 'UTC', 'HH24:MI:SS'), 'ask', to_char(f.next_lookup_at AT TIME ZONE 'UTC', 'HH24:MI:SS'))
    FROM billing.refund AS f WHERE f.refund_id = p_refund_id;
$function$;

SELECT is((SELECT q.send_no FROM billing_worker.start_refunds('sim', 10, 'w') AS q), 1, 'sent');
SELECT is(
    (SELECT s.refund_status FROM billing_test.settle_refund(64, 'NOT_ATTEMPTED', p_code => 'rate_limited') AS s),
    'REQUESTED', 'a 429 is no refusal'
);
SELECT is(pg_temp.state(64), 'REQUESTED send 00:00:00 ask', 'it goes back into the queue');
SELECT is((SELECT count(*) FROM billing_worker.start_refunds('sim', 10, 'w')), 0::bigint, 'and waits');
UPDATE billing.refund SET held_until = clock_timestamp() - interval '1 second';
SELECT is((SELECT q.send_no FROM billing_worker.start_refunds('sim', 10, 'w') AS q), 2, 'sent again');
SELECT is(
    (SELECT s.verdict FROM billing_test.settle_refund(64, 'UNKNOWN', p_epoch_off => -1) AS s),
    'STALE', 'an older claim has nothing to say'
);
SELECT is((SELECT s.refund_status FROM billing_test.settle_refund(64, 'UNKNOWN') AS s), 'UNKNOWN', 'a time-out');
SELECT is(pg_temp.state(64), 'UNKNOWN send 00:15:00 ask 00:00:30', 'asked after 30 s, sent again after 15 min');
SELECT is(
    (SELECT count(*) FROM billing_worker.refunds_to_look_up('sim', 10, '2027-05-01 00:00:29Z')), 0::bigint, 'not before'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.refunds_to_look_up('sim', 10, '2027-05-01 00:00:30Z')), 1::bigint, 'asked'
);
SELECT is(
    (SELECT s.refund_status FROM billing_test.settle_refund(64, 'NOT_FOUND', '2027-05-01 00:00:30Z', p_source => 'LOOKUP') AS s),
    'UNKNOWN', 'nothing found says nothing yet'
);
SELECT is(pg_temp.state(64), 'UNKNOWN send 00:15:00 ask 00:02:30', 'asked again');
SELECT is(
    (SELECT count(*) FROM billing_worker.start_refunds('sim', 10, 'w', '2027-05-01 00:15:00Z')), 0::bigint,
    'a look-up that is due goes before a send that is'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.refunds_to_look_up('sim', 10, '2027-05-01 00:02:30Z')), 1::bigint, 'it is asked'
);
SELECT billing_test.settle_refund(64, 'UNKNOWN', '2027-05-01 00:02:30Z', p_source => 'LOOKUP');
SELECT is(
    (SELECT q.idempotency_key LIKE '%-refund-1' FROM billing_worker.start_refunds('sim', 10, 'w', '2027-05-01 00:15:00Z') AS q),
    true, 'the same request with the same key'
);
-- The worker dies.
UPDATE billing.refund SET lease_until = clock_timestamp() - interval '1 second';
SELECT is(
    (SELECT count(*) FROM billing_worker.refunds_to_look_up('sim', 10, '2027-05-01 00:20:00Z')),
    1::bigint, 'a lapsed claim is asked about'
);
-- The webhook overtakes the answer, between two refunds of one amount.
SELECT billing_api.refund_invoice(64, 98, 'b', '2027-05-01 00:20:00Z');
SELECT is(
    (SELECT count(*) FROM billing_worker.start_refunds('sim', 10, 'w', '2027-05-01 00:20:00Z')),
    1::bigint, 'a second one of the same amount is sent'
);
SELECT billing_worker.receive_webhook('sim', 'e1', 'refund.succeeded', jsonb_build_object(
    'refundId', 'r_one', 'paymentId', 'pay_64', 'reference', (SELECT f.idempotency_key FROM billing.refund AS f WHERE f.refund_id = 64),
    'outcome', 'SUCCEEDED', 'amount', 98, 'currency', 'USD'
));
SELECT is(billing_worker.process_webhooks(10, '2027-05-01 00:20:01Z'), 1, 'the webhook of the first');
SELECT is(billing_test.refunds(64), 'REQUESTED SUCCEEDED 98, REQUESTED STARTED 98', 'settles the first, and only that');
SELECT is(
    (SELECT s.verdict FROM billing_test.settle_refund(64, 'SUCCEEDED', p_gateway_refund_id => 'r_one', p_source => 'LOOKUP') AS s),
    'DUPLICATE', 'its answer comes later and changes nothing'
);
SELECT billing_worker.receive_webhook('sim', 'e2', 'refund.succeeded', jsonb_build_object(
    'refundId', 'r_two', 'paymentId', 'pay_64', 'reference', (SELECT f.idempotency_key FROM billing.refund AS f WHERE f.refund_id = 128),
    'outcome', 'SUCCEEDED', 'amount', 98, 'currency', 'USD'
));
SELECT billing_worker.process_webhooks(10, '2027-05-01 00:20:02Z');
SELECT is((SELECT i.amount_refunded FROM billing.invoice AS i), 196::bigint, '196 in all');
SELECT is(
    (SELECT string_agg(o.payload ->> 'amount', ' ') FROM billing.outbox_event AS o WHERE o.event_type = 'RefundIssued'), '98 98',
    'each of them is told once'
);
-- A refund that nobody here asked for.
SELECT billing_worker.receive_webhook(
    'sim', 'e3', 'refund.succeeded',
    '{"refundId": "r_three", "paymentId": "pay_64", "outcome": "SUCCEEDED", "amount": 98, "currency": "USD"}'
);
SELECT billing_worker.process_webhooks(10, '2027-05-01 00:20:03Z');
SELECT is(
    (SELECT w.status FROM billing.webhook_event AS w WHERE w.event_id = 'e3'),
    'UNMATCHED', 'made at the gateway itself, it matches nothing'
);
SELECT is((SELECT count(*) FROM billing.refund), 2::bigint, 'one row per refund at the gateway');

-- Past the life of the key it is only asked about, and after three rounds a person decides.
SELECT billing_api.refund_invoice(64, 5, 'c', '2027-05-02Z');
SELECT billing_worker.start_refunds('sim', 10, 'w', '2027-05-02Z');
SELECT billing_test.settle_refund(192, 'UNKNOWN', '2027-05-02Z');
SELECT is(
    (SELECT count(*) FROM billing_worker.start_refunds('sim', 10, 'w', '2027-05-03Z')), 0::bigint, 'a lapsed key is not sent'
);
SELECT billing_worker.refunds_to_look_up('sim', 10, '2027-05-03Z');
SELECT billing_test.settle_refund(192, 'NOT_FOUND', '2027-05-03Z', p_source => 'LOOKUP');
SELECT billing_worker.refunds_to_look_up('sim', 10, '2027-05-04Z');
SELECT billing_test.settle_refund(192, 'NOT_FOUND', '2027-05-04Z', p_source => 'LOOKUP');
SELECT is(
    (SELECT c.kind FROM billing_ops.open_cases AS c), 'REFUND_UNKNOWN', 'found nowhere, it is laid before a person'
);
SELECT is_empty($$SELECT * FROM billing_ops.check_integrity()$$, 'every promise holds');
SELECT * FROM finish();
ROLLBACK;
