-- B13
BEGIN;
SELECT plan(8);

SELECT billing_test.clock('2027-04-01T00:00:00Z');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(billing_test.customer());

SELECT billing_ops.set_clock('2027-05-01T00:00:05Z');
SELECT is(billing_worker.renew_due(10), 1, 'five seconds after the boundary the period is renewed');
SELECT row_eq(
    $$SELECT i.period_start, i.issued_at FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'$$,
    ROW('2027-05-01Z'::timestamptz, '2027-05-01T00:00:05Z'::timestamptz), 'for the time from the boundary, not from the run'
);
SELECT billing_ops.set_clock('2027-04-30T23:59:50Z');
SELECT is(billing_worker.renew_due(10), 0, 'after the clock has stepped back to before the boundary nothing is due');
SELECT is(billing_test.collect(), 0, 'nor is the invoice, which was issued later than now');
SELECT billing_ops.set_clock('2027-05-01T00:01:00Z');
SELECT is(billing_worker.renew_due(10), 0, 'nor is a period when it has caught up');
SELECT is((SELECT count(*) FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'), 1::bigint, 'there is one invoice');
SELECT is(billing_test.collect(), 1, 'which is collected at the latest after the size of the step');
SELECT results_eq(
    $$SELECT o.aggregate_seq, o.event_type FROM billing.outbox_event AS o ORDER BY o.outbox_event_id$$,
    $$VALUES (1::bigint, 'SubscriptionCreated'), (2, 'InvoiceOpened'), (3, 'InvoicePaid'), (4, 'SubscriptionActivated'),
      (5, 'InvoiceOpened'), (6, 'InvoicePaid'), (7, 'SubscriptionRenewed')$$,
    'events are numbered as they were committed, whatever the clock said'
);

SELECT * FROM finish();
ROLLBACK;
