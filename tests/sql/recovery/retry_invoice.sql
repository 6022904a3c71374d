-- One attempt now, with the method in use or another one; none while a charge is in flight.
BEGIN;
SELECT plan(37);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
CREATE FUNCTION pg_temp.state(p_invoice_id bigint)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(
        ' ', i.status, i.lane, 'failures', i.failure_count, 'due', i.next_attempt_at = billing.now(),
        s.status
    )
    FROM billing.invoice AS i LEFT JOIN billing.subscription AS s USING (customer_id, subscription_id)
    WHERE i.invoice_id = p_invoice_id;
$function$;

-- Past due on its first rung.
SELECT billing_test.subscription(64);
SELECT billing_test.collect('DECLINED', 'insufficient_funds');
CREATE TEMPORARY TABLE rung AS SELECT i.next_attempt_at FROM billing.invoice AS i WHERE i.invoice_id = 64;
SELECT is(pg_temp.state(64), 'OPEN BACKLOG failures 1 due f PAST_DUE', 'a decline makes it past due');
SELECT billing_ops.set_clock('2027-05-01 06:00Z');
SELECT is(
    (SELECT r.invoice_id FROM billing_api.retry_invoice(64) AS r), 64::bigint, 'the customer asks for another try'
);
SELECT is(pg_temp.state(64), 'OPEN INTERACTIVE failures 1 due t PAST_DUE', 'which is due at once, ahead of others');
SELECT is(billing_test.log_of(64) LIKE '%RetryRequested', true, 'the log says who asked');
SELECT billing_api.retry_invoice(64);
SELECT is(billing_test.collect('DECLINED', 'insufficient_funds'), 1, 'asked twice it is one attempt');
SELECT is(pg_temp.state(64), 'OPEN BACKLOG failures 1 due f PAST_DUE', 'a decline of it uses no rung');
SELECT is(
    (SELECT i.next_attempt_at FROM billing.invoice AS i), (SELECT r.next_attempt_at FROM rung AS r), 'the rung that was planned stands'
);

-- In flight.
SELECT billing_api.retry_invoice(64);
SELECT isnt(billing_test.start('2027-05-01 06:00Z'), NULL, 'a charge is on its way');
SELECT billing_test.refuses(
    'SELECT billing_api.retry_invoice(64)', 'SB306', 'then nothing else is tried', p_detail => 'STARTED'
);
SELECT billing_test.report(
    (SELECT max(a.attempt_id) FROM billing.payment_attempt AS a), 'UNKNOWN', '2027-05-01 06:00Z'
);
SELECT billing_test.refuses(
    'SELECT billing_api.retry_invoice(64)', 'SB306', 'nor while its outcome is unknown', p_detail => 'UNKNOWN'
);
SELECT billing_test.refuses(
    'SELECT billing_api.void_invoice(64)', 'SB306', 'and it is not voided by hand', p_detail => 'UNKNOWN'
);
SELECT billing_test.report(
    (SELECT max(a.attempt_id) FROM billing.payment_attempt AS a), 'DECLINED', '2027-05-01 06:01Z', 'insufficient_funds', 'WEBHOOK', 'p1'
);

-- Another method, through another account.
SELECT billing_test.gateway('other');
SELECT billing_test.customer('d');
SELECT billing_test.refuses(
    'SELECT billing_api.retry_invoice(64, 128)', 'SB205', 'the method of another customer'
);
SELECT m.payment_method_id FROM billing_api.add_payment_method(64, 'other', 'tok_new', p_make_default => false) AS m;
CREATE TEMPORARY TABLE new_method AS SELECT max(m.payment_method_id) AS id FROM billing.payment_method AS m;
SELECT is(
    (SELECT count(*) FROM billing_worker.start_attempts('other', 10, 'w')),
    0::bigint, 'a method that is not the default is not used by itself'
);
SELECT billing_api.retry_invoice(64, (SELECT n.id FROM new_method AS n));
SELECT is(billing_test.collect(), 0, 'not through the old account');
SELECT is(billing_test.collect(p_gateway_account => 'other'), 1, 'but through that of the chosen method');
SELECT is(pg_temp.state(64), 'PAID INTERACTIVE failures 1 due ACTIVE', 'paid, and recovered');
SELECT is(
    (SELECT (s.current_period_start, s.current_period_end) = ('2027-05-01Z'::timestamptz, '2027-06-01Z'::timestamptz)
     FROM billing.subscription AS s),
    true, 'its period has not moved'
);
SELECT billing_test.refuses(
    'SELECT billing_api.retry_invoice(64)', 'SB307', 'what is paid is not tried again', p_detail => 'PAID'
);

-- The customer has to act, and goes on with that.
SELECT billing_test.subscription(64, p_resource_ref => 'action');
SELECT isnt(billing_test.start('2027-05-01 06:00Z'), NULL, 'a second one');
SELECT billing_test.report(
    (SELECT max(a.attempt_id) FROM billing.payment_attempt AS a), 'REQUIRES_ACTION', '2027-05-01 06:00Z',
    p_payment_id => 'act', p_action_expires_at => '2027-05-02Z'
);
CREATE TEMPORARY TABLE before AS SELECT billing_test.fingerprint() AS is_so;
SELECT is((SELECT r.status FROM billing_api.retry_invoice(128) AS r), 'OPEN', 'a pending action goes on');
SELECT is(billing_test.fingerprint(), (SELECT b.is_so FROM before AS b), 'and nothing new is started');
SELECT billing_test.refuses(
    format('SELECT billing_api.retry_invoice(128, %s)', (SELECT n.id FROM new_method AS n)), 'SB306', 'no other method while it is valid'
);
SELECT billing_test.report(
    (SELECT max(a.attempt_id) FROM billing.payment_attempt AS a),
    'SUCCEEDED', '2027-05-01 06:10Z', p_source => 'WEBHOOK', p_payment_id => 'act'
);
SELECT is(pg_temp.state(128), 'PAID INTERACTIVE failures 0 due ACTIVE', 'completed');

-- The debt of a subscription that has ended is paid without reviving it.
SELECT billing_test.subscription(64, p_resource_ref => 'debt', p_dunning_policy => 'store_grace');
SELECT billing_test.collect('DECLINED', 'stolen_card');
SELECT billing_ops.set_clock('2027-06-01Z');
SELECT billing_test.collect('SUCCEEDED') FROM generate_series(1, 4);
SELECT billing_worker.end_dunning(10);
SELECT is(pg_temp.state(192), 'FAILED BACKLOG failures 4 due EXPIRED', 'dunning has ended');
SELECT is(
    (SELECT r.suspended_by_billing_at IS NOT NULL FROM billing_api.resource AS r WHERE r.resource_ref = 'debt'),
    true, 'and suspended the resource'
);
SELECT throws_ok(
    $$SELECT billing_test.subscription(64, p_resource_ref => 'debt')$$, 'SB310', NULL, 'which cannot be signed up anew'
);
SELECT is(billing_test.collect(), 0, 'nothing is attempted by itself');
SELECT billing_api.retry_invoice(192, (SELECT n.id FROM new_method AS n));
SELECT is(
    (SELECT c.interactive FROM billing_worker.count_due_invoices('other', 10) AS c), 1, 'its customer wants to pay it'
);
SELECT is(
    billing_test.collect('DECLINED', 'insufficient_funds', p_gateway_account => 'other'), 1, 'a first try is declined'
);
SELECT is(pg_temp.state(192), 'FAILED BACKLOG failures 5 due EXPIRED', 'the debt stands');
SELECT billing_api.retry_invoice(192);
SELECT is(billing_test.collect(p_gateway_account => 'other'), 1, 'the second one is paid');
SELECT is(pg_temp.state(192), 'PAID BACKLOG failures 5 due EXPIRED', 'and revives nothing');
SELECT is(
    (SELECT r.suspended_by_billing_at FROM billing_api.resource AS r WHERE r.resource_ref = 'debt'), NULL, 'but lifts the suspension'
);
SELECT is(billing_test.published(192) LIKE '%InvoicePaid ResourceResumed', true, 'which is told');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing');
SELECT billing_test.refuses('SELECT billing_api.retry_invoice(63)', 'SB204', 'an unknown invoice');
SELECT is_empty('SELECT * FROM billing_ops.check_integrity()', 'every promise holds');

SELECT * FROM finish();
ROLLBACK;
