-- Whatever a gateway sends: what looks like a card number is not kept, and the event is not lost for it.
BEGIN;
SELECT plan(10);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
CREATE FUNCTION pg_temp.kept(p_event_id text, p_payload jsonb)
RETURNS jsonb
LANGUAGE sql
AS $function$
    SELECT billing_worker.receive_webhook('sim', p_event_id, 'charge.succeeded', p_payload);
    SELECT w.payload FROM billing.webhook_event AS w WHERE w.event_id = p_event_id;
$function$;

SELECT is(
    pg_temp.kept('e1', '{"paymentId": "pay_1", "intentId": "pi_1", "reference": "t-inv-64-try-1", "outcome": "DECLINED",
        "amount": 3000, "currency": "USD", "code": "do_not_honor", "name": "Ada", "refundId": null}'),
    '{"paymentId": "pay_1", "intentId": "pi_1", "reference": "t-inv-64-try-1", "outcome": "DECLINED",
        "amount": 3000, "currency": "USD", "code": "do_not_honor"}', 'what is understood is kept, and nothing else'
);
SELECT is(
    pg_temp.kept('e2', '{"paymentId": "4242424242424242", "intentId": 4242424242424242, "outcome": "SUCCEEDED",
        "reference": "4242 4242 4242 4242", "amount": 3000, "currency": "5555-5555-5555-4444"}'),
    '{"outcome": "SUCCEEDED", "amount": 3000}', 'an id, a reference or a currency that is a card number is left out'
);
SELECT is(
    pg_temp.kept('e3', '{"paymentId": "pay_1", "outcome": "DECLINED", "code": "card 4242424242424242"}'),
    '{"paymentId": "pay_1", "outcome": "DECLINED", "code": "refused_text"}', 'a decline stays one without its words'
);
SELECT is(
    pg_temp.kept('e4', '{"amount": 4242424242424242, "paymentId": 123}'),
    '{"amount": 4242424242424242, "paymentId": "123"}', 'an amount is a number of its own'
);
SELECT is(pg_temp.kept('e5', '{"amount": "4242424242424242"}'), '{}', 'as long as it is one');

-- A refund stays a refund: without its id it is asked about, and no payment.
SELECT billing_test.paid_subscription(64);
SELECT billing_api.refund_invoice(64, 1000, 'a');
SELECT billing_worker.start_refunds('sim', 10, 'w');
SELECT is(
    pg_temp.kept('e6', jsonb_build_object(
        'refundId', '4242424242424242', 'outcome', 'SUCCEEDED', 'amount', 1000, 'currency', 'USD',
        'reference', (SELECT r.idempotency_key FROM billing_api.refund AS r)
    )) -> 'refundId',
    'null', 'the id of a refund is emptied'
);
SELECT billing_worker.process_webhooks(50);
SELECT is(billing_worker.process_webhooks(50), 1, 'news of refunds comes in a call of its own');
SELECT is(
    (SELECT concat_ws(' ', w.status, f.status, f.next_lookup_at = '2027-05-01Z')
     FROM billing.webhook_event AS w INNER JOIN billing.refund AS f USING (customer_id, refund_id) WHERE w.event_id = 'e6'),
    'LOOKUP STARTED t', 'and the gateway is asked what became of it'
);

SELECT is_empty('SELECT * FROM billing_ops.check_integrity() WHERE severity = ''BROKEN''', 'nothing is stored that must not be');
UPDATE billing.webhook_event AS w SET payload = payload || jsonb_build_object(m.key, '4242 4242 4242 4242')
FROM (VALUES ('e1', 'paymentId'), ('e2', 'refundId'), ('e3', 'intentId'), ('e4', 'reference'), ('e5', 'code')) AS m (event_id, key)
WHERE w.event_id = m.event_id;
SELECT results_eq(
    $$SELECT substring(c.object FROM '[a-zA-Z]+$') FROM billing.check_card_numbers() AS c ORDER BY 1$$,
    $$VALUES ('code'), ('intentId'), ('paymentId'), ('reference'), ('refundId')$$, 'the integrity check looks at each of them'
);
SELECT * FROM finish();
ROLLBACK;
