-- Cases about recovery: two open invoices, cards declined for good, actions that nobody completes, sign-ups that fail.
BEGIN;
SELECT plan(25);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
CREATE FUNCTION pg_temp.status(p_subscription_id bigint)
RETURNS text
LANGUAGE sql
RETURN (SELECT s.status FROM billing.subscription AS s WHERE s.subscription_id = p_subscription_id);

-- F02: two open invoices; the first payment alone does not recover it.
SELECT billing_ops.create_dunning_policy('go_on', '{20 days,20 days,20 days}', p_past_due_renewal => 'CONTINUE');
SELECT billing_test.subscription(64, p_resource_ref => 'two', p_dunning_policy => 'go_on');
SELECT billing_test.collect('DECLINED', 'insufficient_funds');
SELECT billing_ops.set_clock('2027-06-01Z');
SELECT billing_worker.renew_due(10);
SELECT billing_test.collect('DECLINED', 'insufficient_funds');
SELECT is((SELECT count(*) FROM billing.invoice AS i WHERE i.status = 'OPEN'), 2::bigint, 'May and June are open');
SELECT billing_api.retry_invoice(64);
SELECT is(billing_test.collect(), 1, 'May is paid');
SELECT is(pg_temp.status(64), 'PAST_DUE', 'which alone does not recover it');
SELECT billing_api.retry_invoice(i.invoice_id) FROM billing.invoice AS i WHERE i.status = 'OPEN';
SELECT is(billing_test.collect(), 1, 'June is paid');
SELECT is(pg_temp.status(64), 'ACTIVE', 'which does');
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o WHERE o.event_type = 'SubscriptionRecovered'), 1::bigint, 'told once'
);

-- F06: a card declined for good is not tried again by itself; a new one is, once.
SELECT billing_test.customer('d');
SELECT billing_test.subscription(128, p_dunning_policy => 'store_grace');
SELECT is(billing_test.collect('DECLINED', 'stolen_card'), 1, 'a stolen card');
SELECT billing_ops.set_clock('2027-06-02 03:00Z');
SELECT is(billing_test.collect(), 0, 'is not tried on the first rung');
SELECT billing_ops.set_clock('2027-06-04 03:00Z');
SELECT is(billing_test.collect(), 0, 'nor on the second');
SELECT is(pg_temp.status(128), 'PAST_DUE', 'grace runs on');
SELECT billing_api.add_payment_method(128, 'sim', 'tok_new');
SELECT is(billing_test.collect(), 1, 'a new card is, at once and once');
SELECT is(pg_temp.status(128), 'ACTIVE', 'and recovers it');

-- F08: an error that names the mandate is a decline, never a success.
SELECT billing_test.customer('e');
SELECT billing_test.subscription(192, p_dunning_policy => 'store_grace');
SELECT billing_test.collect('DECLINED', 'invalid_mandate');
SELECT is(
    (SELECT concat_ws(' ', a.status, a.decline_code, i.status)
     FROM billing.payment_attempt AS a INNER JOIN billing.invoice AS i USING (customer_id, invoice_id) WHERE a.customer_id = 192),
    'DECLINED invalid_mandate OPEN', 'a revoked mandate is a decline'
);
-- F09: the edge of grace, seven days.
SELECT is(
    billing_api.has_access(192, p_as_of => '2027-06-11 02:59:59Z'), true, 'access until the last second of grace'
);
SELECT is(billing_api.has_access(192, p_as_of => '2027-06-11 03:00Z'), false, 'and not beyond');
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o WHERE o.customer_id = 192 AND o.event_type = 'SubscriptionPastDue'),
    1::bigint, 'past due is told once'
);

-- F10: a grace that ends before the last retry.
SELECT throws_ok(
    $$SELECT billing_ops.create_dunning_policy('short', '{1 day,10 days}', p_grace => '7 days')$$, 'SB107', NULL, 'is no policy'
);

-- F12: the chosen card is charged, and nobody else's.
SELECT billing_test.customer('f');
SELECT billing_api.add_payment_method(256, 'sim', 'tok_chosen', p_make_default => false);
SELECT billing_test.subscription(256);
SELECT billing_api.set_subscription_payment_method(s.subscription_id, m.payment_method_id)
FROM billing.subscription AS s INNER JOIN billing.payment_method AS m USING (customer_id)
WHERE s.customer_id = 256 AND m.token = 'tok_chosen';
SELECT is(
    (SELECT q.payment_method_token FROM billing_worker.start_attempts('sim', 10, 'w') AS q), 'tok_chosen', 'the chosen card is charged'
);
SELECT throws_ok(
    $$SELECT billing_api.set_subscription_payment_method(s.subscription_id, 64) FROM billing.subscription AS s WHERE s.customer_id = 256$$,
    'SB205', NULL, 'not that of another customer'
);

-- F15: an action that nobody completes; the sign-up expires without ever giving access.
SELECT billing_test.customer('g');
SELECT billing_test.subscription(320, p_payment_behavior => 'PAY_FIRST');
CREATE TEMPORARY TABLE three_d AS SELECT a.attempt_id FROM billing_worker.start_attempts('sim', 10, 'w') AS a;
SELECT billing_test.report(
    t.attempt_id, 'REQUIRES_ACTION', '2027-06-04 03:00Z', p_payment_id => 'act', p_action_expires_at => '2027-06-05 02:00Z'
)
FROM three_d AS t;
SELECT is(billing_api.has_access(320), false, 'no access while the customer is to act');
SELECT billing_ops.set_clock('2027-06-05 04:00Z');
SELECT billing_worker.attempts_to_look_up('sim', 10);
SELECT billing_test.report(t.attempt_id, 'REQUIRES_ACTION', '2027-06-05 04:00Z', p_source => 'LOOKUP', p_payment_id => 'act')
 FROM three_d AS t;
SELECT is(
    (SELECT concat_ws(' ', a.status, a.decline_code) FROM billing.payment_attempt AS a INNER JOIN three_d USING (attempt_id)),
    'DECLINED action_expired', 'it expires'
);
SELECT billing_worker.expire_checkouts(10);
SELECT is(
    (SELECT concat_ws(' ', s.status, i.status)
     FROM billing.subscription AS s INNER JOIN billing.invoice AS i USING (customer_id, subscription_id) WHERE s.customer_id = 320),
    'EXPIRED VOID', 'and with it the sign-up'
);
-- A11: what failed leaves nothing live behind.
SELECT lives_ok('SELECT billing_test.paid_subscription(320)', 'signing up again works');
SELECT results_eq(
    $$SELECT s.status, count(*) FROM billing.subscription AS s WHERE s.customer_id = 320 GROUP BY s.status ORDER BY s.status$$,
    $$VALUES ('ACTIVE', 1::bigint), ('EXPIRED', 1)$$, 'one is active, the other has ended'
);
SELECT is_empty($$SELECT * FROM billing_ops.check_integrity() WHERE severity = 'BROKEN'$$, 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
