BEGIN;
SELECT plan(12);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c', p_time_zone => 'Europe/Berlin');
SELECT billing_test.plan();

SELECT results_eq(
    $$SELECT s.subscription_id, s.resource_ref, s.plan_code, s.quantity, s.status, s.current_period_start, s.current_period_end,
             s.next_renewal_at, s.version, s.unit_amount, s.currency, s.time_zone, s.dunning_policy, s.created_at
      FROM billing_api.create_subscription(64, 'BASIC', 'k') AS s$$,
    $$VALUES (64::bigint, 'default', 'BASIC', 1, 'INCOMPLETE', NULL::timestamptz, NULL::timestamptz,
              NULL::timestamptz, 1::bigint, 3000::bigint, 'USD', 'Europe/Berlin', 'standard', '2027-01-31 10:30Z'::timestamptz)$$,
    'a sign-up is INCOMPLETE, without a period, until it is paid'
);
SELECT results_eq(
    $$SELECT i.kind, i.status, i.total, i.amount_due, i.period_start, i.period_end, i.opens_period, i.drives_status, i.lane,
             i.next_attempt_at, i.gateway_account_id IS NOT NULL
      FROM billing.invoice AS i$$,
    $$VALUES ('INITIAL', 'OPEN', 3000::bigint, 3000::bigint, '2027-01-31 10:30Z'::timestamptz, '2027-02-28 10:30Z'::timestamptz,
              true, false, 'INTERACTIVE', '2027-01-31 10:30Z'::timestamptz, true)$$,
    'its invoice is due at once, before the backlog, with a provisional period, and drives nothing'
);
SELECT results_eq(
    $$SELECT l.line_no, l.kind, l.description, l.amount, l.unit_amount, l.quantity, l.seconds_billed, l.period_start, l.period_end
      FROM billing_api.invoice_line AS l$$,
    $$VALUES (1, 'PERIOD', 'Basic', 3000::bigint, 3000::bigint, 1, NULL::bigint,
              '2027-01-31 10:30Z'::timestamptz, '2027-02-28 10:30Z'::timestamptz)$$,
    'with one line for a full period'
);
SELECT is_empty('SELECT * FROM billing.subscription_period', 'the timeline has not begun');
SELECT ok(NOT billing_api.has_access(64), 'and there is no access');
SELECT results_eq(
    $$SELECT e.event_seq, e.event_type, e.from_status, e.to_status, e.invoice_id
      FROM billing.subscription_event AS e ORDER BY e.event_seq$$,
    $$VALUES (1::bigint, 'SubscriptionCreated', NULL, 'INCOMPLETE', NULL::bigint), (2, 'InvoiceOpened', NULL, NULL, 64)$$,
    'the log has two entries'
);
SELECT results_eq(
    'SELECT o.aggregate_type, o.aggregate_id, o.aggregate_seq, o.event_type FROM billing.outbox_event AS o ORDER BY o.aggregate_seq',
    $$VALUES ('subscription', 64::bigint, 1::bigint, 'SubscriptionCreated'), ('subscription', 64, 2, 'InvoiceOpened')$$,
    'and the world is told both'
);
SELECT is(s.event_seq, 2::bigint, 'the subscription counts them') FROM billing.subscription AS s;

-- Paid two hours later.
SELECT is(billing_test.collect(p_as_of => '2027-01-31 12:30Z'), 1, 'the charge is made');
SELECT results_eq(
    $$SELECT s.status, s.current_period_start, s.current_period_end, s.anchor_at, s.period_no
      FROM billing.subscription AS s$$,
    $$VALUES ('ACTIVE', '2027-01-31 12:30Z'::timestamptz, '2027-02-28 12:30Z'::timestamptz, '2027-01-31 13:30'::timestamp, 1)$$,
    'period and anchor are the instant of payment'
);
SELECT ok(
    billing_api.has_access(64, p_as_of => '2027-01-31 12:30Z'), 'from then on there is access'
);
SELECT ok(
    NOT billing_api.has_access(64, p_as_of => '2027-01-31 12:29:59Z'), 'not before'
);

SELECT * FROM finish();
ROLLBACK;
