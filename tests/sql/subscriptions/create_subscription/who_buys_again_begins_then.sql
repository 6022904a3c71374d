-- B17: after an end a new subscription begins where it is bought, on its own anchor, at the full price of that day.
BEGIN;
SELECT plan(16);
SELECT billing_test.plans();

-- A month that expires on 1 August.
SELECT billing_test.paid('b17', 'BASIC', '2027-07-01Z', p_term_periods => 1);
SELECT billing_worker.renew_due(10, '2027-08-01Z');
SELECT results_eq(
    'SELECT s.status, s.ended_at FROM billing_api.subscription AS s WHERE s.subscription_id = 64',
    $$VALUES ('EXPIRED', '2027-08-01Z'::timestamptz)$$, 'B17: it has expired on 1 August'
);
SELECT ok(NOT billing_api.has_access(64, NULL, '2027-08-10Z'), 'B17: since then there is no access');
SELECT results_eq(
    $$SELECT s.subscription_id, s.status FROM billing_api.create_subscription(64, 'BASIC', 'again', p_as_of => '2027-08-18Z') AS s$$,
    $$VALUES (128::bigint, 'INCOMPLETE')$$, 'B17: on 18 August it is bought again, as another subscription'
);
SELECT is(billing_test.collect(p_as_of => '2027-08-18Z'), 1, 'B17: and charged once');
SELECT results_eq(
    'SELECT * FROM billing_test.periods_of(128)', $$VALUES ('BILLED 2027-08-18 to 2027-09-18')$$, 'B17: from 18 August to 18 September'
);
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(128)', $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000')$$, 'B17: for the full 3000'
);
SELECT is(s.anchor_at, '2027-08-18'::timestamp, 'B17: the anchor is the 18th')
FROM billing.subscription AS s WHERE s.subscription_id = 128;
SELECT ok(billing_api.has_access(64, NULL, '2027-08-18Z'), 'B17: with access from then on');
SELECT billing_worker.renew_due(10, '2027-09-18Z');
SELECT is(s.current_period_end, '2027-10-18Z'::timestamptz, 'B17: the next month follows from that')
FROM billing_api.subscription AS s WHERE s.subscription_id = 128;
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(64)', $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000')$$, 'B17: the old one stays as it was'
);

-- Cancelled, granted first, and at the price of that day: what was pinned went with the old subscription.
SELECT billing_test.paid('later', 'PRO', '2027-07-01Z');
SELECT billing_api.cancel_subscription(192, p_as_of => '2027-07-16Z');
SELECT billing_api.add_price('PRO', 9500, 'USD', '2027-08-01Z', p_as_of => '2027-07-20Z');
SELECT results_eq(
    $$SELECT s.status, s.current_period_start, s.current_period_end, s.unit_amount
      FROM billing_api.create_subscription(128, 'PRO', 'again', p_payment_behavior => 'GRANT_FIRST', p_as_of => '2027-08-31 12:00Z') AS s$$,
    $$VALUES ('ACTIVE', '2027-08-31 12:00Z'::timestamptz, '2027-09-30 12:00Z'::timestamptz, 9500::bigint)$$,
    'after a cancellation it begins where it is bought, at the price of that day'
);
SELECT is(i.total, 9500::bigint, 'which is what is owed') FROM billing_api.invoice AS i WHERE i.subscription_id = 256;
SELECT billing_test.refuses(
    $$SELECT billing_api.undo_cancel(192, p_as_of => '2027-08-31 12:00Z')$$, 'SB302', 'the old one is not revived'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(128, 'PRO', 'twice', p_as_of => '2027-08-31 12:00Z')$$, 'SB301',
    'nor is there a second new one', p_detail => '256'
);

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
