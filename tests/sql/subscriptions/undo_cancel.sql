BEGIN;
SELECT plan(15);
SELECT billing_test.clock('2027-04-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64);
SELECT billing_test.refuses('SELECT billing_api.undo_cancel(64)', 'SB315', 'there is nothing to undo');

SELECT billing_api.cancel_subscription(64, true, p_as_of => '2027-04-10Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(64, 'BASIC', 'again', p_as_of => '2027-04-20Z')$$, 'SB301',
    'signing up again is refused and names the subscription', p_detail => '64'
);
SELECT results_eq(
    $$SELECT s.subscription_id, s.status, s.cancel_at_period_end, s.current_period_end
      FROM billing_api.undo_cancel(64, p_idempotency_key => 'k', p_as_of => '2027-04-20Z') AS s$$,
    $$VALUES (64::bigint, 'ACTIVE', false, '2027-05-01Z'::timestamptz)$$, 'undone, it is the same subscription in the same period'
);
SELECT results_eq(
    $$SELECT e.event_type, e.payload -> 'effectiveAt' FROM billing.outbox_event AS e ORDER BY e.outbox_event_id DESC LIMIT 1$$,
    $$VALUES ('SubscriptionCancelScheduled', 'null'::jsonb)$$, 'the world is told that it will not end'
);
SELECT is(s.cancel_at_period_end, false, 'the same key gets the stored answer')
FROM billing_api.undo_cancel(64, p_idempotency_key => 'k', p_as_of => '2027-04-20Z') AS s;
SELECT is(billing_worker.renew_due(100, '2027-05-01Z'), 1, 'at the boundary it renews');
SELECT results_eq(
    $$SELECT i.kind, i.total, i.issued_at FROM billing_api.invoice AS i ORDER BY i.issued_at$$,
    $$VALUES ('INITIAL', 3000::bigint, '2027-04-01Z'::timestamptz), ('RENEWAL', 3000, '2027-05-01Z')$$, 'as it would have'
);

SELECT billing_api.cancel_subscription(64, true, p_as_of => '2027-05-02Z');
SELECT is(s.cancel_at_period_end, false, 'at the boundary itself it can still be undone')
FROM billing_api.undo_cancel(64, p_as_of => '2027-06-01Z') AS s;
SELECT billing_api.cancel_subscription(64, true, p_as_of => '2027-05-02Z');
SELECT billing_test.refuses(
    $$SELECT billing_api.undo_cancel(64, p_as_of => '2027-06-01 00:00:01Z')$$, 'SB302',
    'after it not, also while nobody has processed it', p_detail => 'ended at 2027-06-01T00:00:00Z: period_end'
);
SELECT billing_test.refuses(format('SELECT billing_api.undo_cancel(%s)', s.arguments), s.sqlstate, s.description)
FROM (VALUES
    ('65', 'SB201', 'an unknown subscription'),
    ('NULL', 'SB201', 'no subscription'),
    ('64, 1', 'SB304', 'another version than expected'),
    ('64, p_as_of => NULL', 'SB104', 'no p_as_of')
) AS s (arguments, sqlstate, description);
SELECT billing_worker.renew_due(100, '2027-06-01Z');
SELECT billing_test.refuses('SELECT billing_api.undo_cancel(64)', 'SB302', 'what has ended stays ended');
SELECT is(s.status, 'CANCELED', 'at its boundary') FROM billing_api.subscription AS s WHERE s.ended_at = '2027-06-01Z';

SELECT * FROM finish();
ROLLBACK;
