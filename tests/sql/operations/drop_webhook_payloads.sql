-- What gateways sent is dropped in time; that they sent it is not.
BEGIN;
SELECT plan(8);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.gateway();

INSERT INTO billing.webhook_event (gateway_account_id, event_id, event_type, payload, status, received_at)
SELECT a.gateway_account_id, v.event_id, 'charge.succeeded', '{}', v.status, v.received_at
FROM billing.gateway_account AS a
CROSS JOIN (VALUES
    ('oldest', 'APPLIED', '2027-03-01Z'::timestamptz),
    ('old', 'DUPLICATE', '2027-03-16Z'),
    ('45 days', 'APPLIED', '2027-03-17Z'),
    ('waiting', 'UNMATCHED', '2027-01-01Z'),
    ('unread', 'RECEIVED', '2027-01-01Z')
) AS v (event_id, status, received_at);

SELECT is(billing_worker.drop_webhook_payloads(1), 1, 'it drops as many as it is told to');
SELECT is(
    (SELECT w.event_id FROM billing.webhook_event AS w WHERE w.payload IS NULL), 'oldest', 'the oldest first'
);
SELECT is(billing_worker.drop_webhook_payloads(100), 1, 'then the rest of what is older than 45 days');
SELECT is(billing_worker.drop_webhook_payloads(100), 0, 'and then nothing');
SELECT results_eq(
    $$SELECT w.event_id FROM billing.webhook_event AS w WHERE w.payload IS NOT NULL ORDER BY 1$$,
    $$VALUES ('45 days'), ('unread'), ('waiting')$$,
    'what still waits keeps its payload'
);
SELECT is((SELECT count(*) FROM billing.webhook_event), 5::bigint, 'the events stay, so that a repetition is known');
SELECT throws_ok($$SELECT billing_worker.drop_webhook_payloads(NULL)$$, 'SB101', NULL, 'no limit is refused');
SELECT throws_ok(
    $$SELECT billing_worker.drop_webhook_payloads(1, p_keep_days => NULL)$$, 'SB101', NULL, 'no number of days as well'
);

SELECT * FROM finish();
ROLLBACK;
