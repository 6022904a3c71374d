-- C01, C11, C12, C13, C24, and the figures of a well-known exercise: credit for what is left of the old price, charge for
-- the same time at the new one, each multiplied before divided and floored once.
BEGIN;
SELECT plan(27);
SELECT billing_test.plans();

-- C01: 15 of the 30 days of April are left.
SELECT billing_test.paid('c01', 'BASIC', '2027-04-01Z') AS c01;
SELECT is(s.plan_code || ' then ' || s.pending_plan_code, 'BASIC then PRO', 'C01: a change waits for its payment')
FROM billing_api.change_plan(64, 'PRO', p_as_of => '2027-04-16Z') AS s;
SELECT billing_test.collect(p_as_of => '2027-04-16Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(64)',
    $$VALUES ('INITIAL PAID 3000 paid', 'PERIOD 3000'), ('CHANGE PAID 3000 paid', 'PRORATION -1500, PRORATION 4500')$$,
    'C01: half of BASIC back, half of PRO to pay'
);
SELECT results_eq(
    $$SELECT s.plan_code, s.pending_plan_code, s.status, s.current_period_start, s.current_period_end
      FROM billing_api.subscription AS s WHERE s.subscription_id = 64$$,
    $$VALUES ('PRO', NULL, 'ACTIVE', '2027-04-01Z'::timestamptz, '2027-05-01Z'::timestamptz)$$, 'C01: the period does not move'
);
SELECT results_eq(
    $$SELECT l.unit_amount, l.quantity, l.seconds_billed, l.seconds_total, l.period_start, l.period_end
      FROM billing_api.invoice_line AS l INNER JOIN billing_api.invoice AS i USING (invoice_id)
      WHERE i.kind = 'CHANGE' ORDER BY l.line_no$$,
    $$VALUES (3000::bigint, 1, 1296000::bigint, 2592000::bigint, '2027-04-16Z'::timestamptz, '2027-05-01Z'::timestamptz),
             (9000, 1, 1296000, 2592000, '2027-04-16Z', '2027-05-01Z')$$,
    'C01: each line keeps what it was computed from'
);
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT is(i.total, 9000::bigint, 'C01: the next invoice is the new price')
FROM billing_api.invoice AS i WHERE i.subscription_id = 64 AND i.kind = 'RENEWAL';
SELECT is(
    billing_test.published(64),
    'SubscriptionCreated InvoiceOpened InvoicePaid SubscriptionActivated InvoiceOpened InvoicePaid SubscriptionPlanChanged InvoiceOpened',
    'C01: the world is told once, when the change has taken effect'
);

-- C11: 183 of the 365 days of 2027 are left: 60000 x 183 / 365 = 30082.19, 120000 x 183 / 365 = 60164.38.
SELECT billing_api.create_plan('SEAT_YEAR', 'Seat', 12000, 'USD', 'YEAR', p_as_of => '2026-01-01Z');
SELECT billing_test.paid('c11', 'SEAT_YEAR', '2027-01-01Z', p_quantity => 5);
SELECT billing_api.change_plan(128, 'SEAT_YEAR', 10, p_as_of => '2027-07-02Z');
SELECT billing_test.collect(p_as_of => '2027-07-02Z');
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(128)',
    $$VALUES ('INITIAL PAID 60000 paid', 'PERIOD 60000'), ('CHANGE PAID 30082 paid', 'PRORATION -30082, PRORATION 60164')$$,
    'C11: five more seats are collected now'
);
SELECT billing_worker.renew_due(10, '2028-01-01Z');
SELECT is(i.total, 120000::bigint, 'C11: the next year costs ten seats, and nothing is left over')
FROM billing_api.invoice AS i WHERE i.subscription_id = 128 AND i.kind = 'RENEWAL';

-- C12: three seats are credited, not one.
SELECT billing_test.paid('c12', 'TEAM', '2027-04-01Z', p_quantity => 3);
SELECT billing_api.change_plan(192, 'PRO', 1, p_as_of => '2027-04-16Z');
SELECT is(
    (SELECT max(i.lines) FROM billing_test.invoices_of(192) AS i WHERE i.invoice LIKE 'CHANGE%'),
    'PRORATION -1500, PRORATION 4500', 'C12: all seats are credited'
);

-- C13: 21 of 31 days of 1000 are 677.42, credit and charge alike.
SELECT billing_api.create_plan('THOUSAND', 'Thousand', 1000, 'USD', 'MONTH', p_as_of => '2026-01-01Z');
SELECT billing_test.paid('c13', 'THOUSAND', '2027-05-01Z');
SELECT is(s.plan_code, 'THOUSAND', 'C13: a change to itself is done at once')
FROM billing_api.change_plan(256, 'THOUSAND', p_as_of => '2027-05-11Z') AS s;
SELECT results_eq(
    'SELECT * FROM billing_test.invoices_of(256)',
    $$VALUES ('INITIAL PAID 1000 paid', 'PERIOD 1000'), ('CHANGE PAID ', 'PRORATION -677, PRORATION 677')$$,
    'C13: a change to itself costs exactly nothing'
);
SELECT billing_api.change_plan(256, 'THOUSAND', p_as_of => '2027-05-11Z'::timestamptz + n * interval '6 hours 47 minutes 13 seconds')
FROM generate_series(1, 60) AS n;
SELECT is(
    (SELECT format('%s changes, %s paid, %s left over', count(*), sum(i.amount_paid), sum(i.total) - sum(i.amount_paid))
     FROM billing_api.invoice AS i WHERE i.subscription_id = 256),
    '62 changes, 1000 paid, 0 left over', 'C13: nor do sixty, at odd seconds'
);
SELECT is(billing_test.credit_of(256), 0::bigint, 'C13: and none of them leaves credit');

-- Segments of a period, each floored, never come to more than the price, nor to less by more than a unit each.
SELECT is_empty(
    $$SELECT cuts.n, sum(billing.prorated_amount(1000, 1, part.seconds, 2678400))
      FROM generate_series(1, 40) AS cuts (n)
      CROSS JOIN LATERAL (
          SELECT coalesce(lead(c.at) OVER (ORDER BY c.at), 2678400) - c.at AS seconds
          FROM (SELECT DISTINCT CASE WHEN k = 0 THEN 0 ELSE hashint4(cuts.n * 1000 + k)::bigint & 2097151 END AS at
                FROM generate_series(0, cuts.n) AS k) AS c
      ) AS part
      GROUP BY cuts.n
      HAVING sum(billing.prorated_amount(1000, 1, part.seconds, 2678400)) NOT BETWEEN 1000 - cuts.n - 1 AND 1000$$,
    'C13: however it is cut, the parts come to the price, less at most a unit each'
);

-- C24: the catalogue has a new version; the subscription and its credit keep the old one.
SELECT billing_test.paid('c24 a', 'BASIC', '2027-04-01Z'), billing_test.paid('c24 b', 'BASIC', '2027-04-01Z');
SELECT billing_api.add_price('BASIC', 3500, 'USD', '2027-04-10Z', p_as_of => '2027-04-05Z');
SELECT billing_api.change_plan(384, 'PRO', p_as_of => '2027-04-16Z');
SELECT is(
    (SELECT max(i.lines) FROM billing_test.invoices_of(384) AS i WHERE i.invoice LIKE 'CHANGE%'),
    'PRORATION -1500, PRORATION 4500', 'C24: what was paid at the old price is credited at the old price'
);
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT is(i.total, 3000::bigint, 'C24: the renewal is at the price that was agreed')
FROM billing_api.invoice AS i WHERE i.subscription_id = 320 AND i.kind = 'RENEWAL';
SELECT billing_test.collect(p_as_of => '2027-05-01Z');
SELECT billing_api.change_plan(320, 'BASIC', 2, p_as_of => '2027-05-16 12:00Z');
SELECT is(
    (SELECT max(i.lines) FROM billing_test.invoices_of(320) AS i WHERE i.invoice LIKE 'CHANGE%'),
    'PRORATION -1500, PRORATION 3000', 'C24: another quantity of the same plan too'
);

-- The exercise: 14 days of trial, cycles of 30 days, and on day 24 from $49 to $99: 20 of 30 days are left.
SELECT billing_api.create_plan('PRO_30', 'Pro', 4900, 'USD', 'DAY', 30, 14, p_as_of => '2026-01-01Z');
SELECT billing_api.create_plan('PREMIUM_30', 'Premium', 9900, 'USD', 'DAY', 30, p_as_of => '2026-01-01Z');
SELECT billing_test.customer('kata');
SELECT billing_api.create_subscription(c.customer_id, 'PRO_30', 'k', p_as_of => '2027-01-01Z')
FROM billing.customer AS c WHERE c.external_ref = 'kata';
SELECT billing_worker.renew_due(10, '2027-01-15Z');
SELECT billing_test.collect(p_as_of => '2027-01-15Z');
SELECT billing_api.change_plan(448, 'PREMIUM_30', p_as_of => '2027-01-25Z');
SELECT is(
    (SELECT max(i.lines) FROM billing_test.invoices_of(448) AS i WHERE i.invoice LIKE 'CHANGE%'),
    'PRORATION -3266, PRORATION 6600', 'the exercise: $49 of which 20 of 30 days are left is 3266, the side of $99 is 6600'
);
SELECT billing_test.collect(p_as_of => '2027-01-25Z');
SELECT is(
    (SELECT i.amount_paid FROM billing_api.invoice AS i WHERE i.subscription_id = 448 AND i.kind = 'CHANGE'), 3334::bigint,
    'the exercise: 3334 are charged'
);
SELECT results_eq(
    'SELECT s.plan_code, s.current_period_start, s.current_period_end FROM billing_api.subscription AS s WHERE s.subscription_id = 448',
    $$VALUES ('PREMIUM_30', '2027-01-15Z'::timestamptz, '2027-02-14Z'::timestamptz)$$, 'the exercise: the cycle is not reset'
);
SELECT is(
    billing.prorated_amount(4900, 1, 20, 30) - (4900 / 30) * 20, 6::bigint, 'the exercise: dividing first would drift by 6 cents'
);
SELECT is(
    billing.prorated_amount(9900, 1, 20, 30) - billing.prorated_amount(4900, 1, 20, 30),
    ((9900 / 30) * 20 - (4900 / 30) * 20 - 6)::bigint, 'the exercise: always in favour of the seller'
);

-- 100,000 to 300,000 at half of 30 days.
SELECT billing_api.create_plan('HUNDRED', 'Hundred', 100000, 'USD', 'DAY', 30, p_as_of => '2026-01-01Z');
SELECT billing_api.create_plan('TRIPLE', 'Triple', 300000, 'USD', 'DAY', 30, p_as_of => '2026-01-01Z');
SELECT billing_test.paid('hundred', 'HUNDRED', '2027-06-01Z');
SELECT billing_api.change_plan(512, 'TRIPLE', p_as_of => '2027-06-16Z');
SELECT is(i.total, 100000::bigint, 'from 100,000 to 300,000 at half of 30 days is 100,000')
FROM billing_api.invoice AS i WHERE i.subscription_id = 512 AND i.kind = 'CHANGE';

-- Where daylight saving begins, the month is an hour shorter, and the hour is not paid for.
SELECT billing_test.paid('new york', 'BASIC', '2027-03-01 05:00Z', p_time_zone => 'America/New_York');
SELECT is(s.current_period_end, '2027-04-01 04:00Z'::timestamptz, 'March in New York ends an hour early in UTC')
FROM billing_api.subscription AS s WHERE s.subscription_id = 576;
SELECT billing_api.change_plan(576, 'PRO', p_as_of => '2027-03-16 16:00Z');
-- 372 of 743 hours: 3000 x 372 / 743 = 1502.02, 9000 x 372 / 743 = 4506.06.
SELECT is(
    (SELECT max(i.lines) FROM billing_test.invoices_of(576) AS i WHERE i.invoice LIKE 'CHANGE%'),
    'PRORATION -1502, PRORATION 4506', 'and is prorated by the 743 hours that it has'
);

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
