-- A01: the gateway took the charge and the answer was lost; the look-up, the repeated send and the webhook all tell of it.
BEGIN;
SELECT plan(15);

SELECT billing_test.renewal_invoice();
CREATE TEMPORARY TABLE sent AS
SELECT 1 AS no, q.* FROM billing_worker.start_attempts('sim', 10, 'worker', '2027-05-01T00:00:00Z') AS q;
SELECT billing_test.report(s.attempt_id, 'UNKNOWN', '2027-05-01T00:00:30Z', 'timeout') FROM sent AS s;
SELECT row_eq(
    $$SELECT a.status, i.status, i.failure_count, s.status FROM billing.payment_attempt AS a
      INNER JOIN sent AS x USING (attempt_id)
      INNER JOIN billing.invoice AS i ON i.customer_id = a.customer_id AND i.invoice_id = a.invoice_id
      INNER JOIN billing.subscription AS s ON s.customer_id = i.customer_id AND s.subscription_id = i.subscription_id$$,
    ROW('UNKNOWN'::text, 'OPEN'::text, 0, 'ACTIVE'::text), 'A01: after the time-out the attempt is UNKNOWN, and nothing else has changed'
);
-- It is asked about twice before that, and both look-ups err.
SELECT is(
    (SELECT count(*) FROM billing_worker.attempts_to_look_up('sim', 10, '2027-05-01T00:01:00Z', 'asker')), 1::bigint,
    'A01: it is asked about before it is sent again'
);
SELECT billing_test.report(s.attempt_id, 'UNKNOWN', '2027-05-01T00:01:01Z', 'http_500', 'LOOKUP') FROM sent AS s;
SELECT is(
    (SELECT count(*) FROM billing_worker.attempts_to_look_up('sim', 10, '2027-05-01T00:03:00Z', 'asker')), 1::bigint, 'A01: and once more'
);
SELECT billing_test.report(s.attempt_id, 'UNKNOWN', '2027-05-01T00:03:01Z', 'http_500', 'LOOKUP') FROM sent AS s;
INSERT INTO sent SELECT 2, q.* FROM billing_worker.start_attempts('sim', 10, 'worker', '2027-05-01T00:15:00Z') AS q;
SELECT is(
    (SELECT count(DISTINCT concat_ws('|', s.attempt_id, s.idempotency_key, s.amount, s.currency, s.payment_method_token, s.description))
        || ' of ' || count(*) FROM sent AS s),
    '1 of 2', 'A01: the second send repeats the first byte by byte'
);
SELECT billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:15:02Z', p_payment_id => 'pay_1', p_amount => 3000,
    p_currency => 'USD')
FROM sent AS s WHERE s.no = 1;
SELECT row_eq(
    $$SELECT i.status, i.amount_paid FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'$$, ROW('PAID'::text, 3000::bigint),
        'A01: its answer pays'
);

-- The webhook of the first call arrives after all that; so does a copy of it.
SELECT billing_worker.receive_webhook(
    'sim', e.id, 'charge.succeeded',
    (SELECT jsonb_build_object('outcome', 'SUCCEEDED', 'paymentId', 'pay_1', 'reference', s.idempotency_key, 'amount', 3000, 'currency',
        'USD')
     FROM sent AS s WHERE s.no = 1), '2027-05-01T00:16:00Z'
)
FROM (VALUES ('evt_1'), ('evt_2')) AS e (id);
SELECT lives_ok($$SELECT billing_worker.process_webhooks(10, '2027-05-01T00:16:00Z')$$, 'A01: both webhooks are processed');
SELECT is((SELECT array_agg(DISTINCT w.status) FROM billing.webhook_event AS w), '{DUPLICATE}', 'A01: as duplicates');
SELECT is((SELECT count(*) FROM billing.payment_attempt AS a INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
    WHERE i.kind = 'RENEWAL'),
    1::bigint, 'A01: one attempt');
SELECT is((SELECT i.amount_paid FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'), 3000::bigint, 'A01: paid once');
SELECT is((SELECT count(*) FROM billing.outbox_event AS o WHERE o.event_type = 'InvoicePaid' AND o.payload ->> 'kind' = 'RENEWAL'),
    1::bigint,
    'A01: told once');
SELECT is((SELECT count(*) FROM billing.credit_entry), 0::bigint, 'A01: no credit comes of it');
SELECT is((SELECT i.failure_count || ' ' || i.attempt_count FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'), '0 1',
    'A01: no rung was used');
SELECT is(
    (SELECT array_agg(r.outcome || ' ' || r.source || ' ' || r.verdict ORDER BY r.payment_report_id) FROM billing.payment_report AS r
     INNER JOIN sent AS s ON s.attempt_id = r.attempt_id WHERE s.no = 1),
    '{UNKNOWN SEND APPLIED,UNKNOWN LOOKUP APPLIED,UNKNOWN LOOKUP APPLIED,SUCCEEDED SEND APPLIED,'
    'SUCCEEDED WEBHOOK DUPLICATE,SUCCEEDED WEBHOOK DUPLICATE}',
        'A01: all that was said is on record'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
