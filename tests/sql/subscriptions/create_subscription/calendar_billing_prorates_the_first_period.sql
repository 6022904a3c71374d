BEGIN;
SELECT plan(13);
SELECT billing_test.clock('2027-02-15Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.plan('ANNUAL', 36500, p_interval_unit => 'YEAR');
SELECT billing_test.plan('WEEKLY', 700, p_interval_unit => 'WEEK');
CREATE FUNCTION pg_temp.sign_up(p_resource_ref text)
RETURNS SETOF billing.subscription
LANGUAGE sql
AS $function$
    SELECT s.*
    FROM billing.subscription AS s
    INNER JOIN billing.resource AS r USING (customer_id, resource_id)
    WHERE r.external_ref = p_resource_ref;
$function$;

-- 14 of 28 days.
SELECT results_eq(
    $$SELECT s.status, s.current_period_start, s.current_period_end, s.anchor_day
      FROM billing_api.create_subscription(64, 'BASIC', 'k1', 'one', p_payment_behavior => 'GRANT_FIRST', p_anchor_day => 1) AS s$$,
    $$VALUES ('ACTIVE', '2027-02-15Z'::timestamptz, '2027-03-01Z'::timestamptz, 1::smallint)$$,
    'the first period runs to the next first of the month'
);
SELECT results_eq(
    $$SELECT l.kind, l.amount, l.unit_amount, l.seconds_billed, l.seconds_total FROM billing_api.invoice_line AS l$$,
    $$VALUES ('PRORATION', 1500::bigint, 3000::bigint, 1209600::bigint, 2419200::bigint)$$, 'half of February costs half the price'
);
SELECT is((SELECT s.period_no FROM billing.subscription AS s), 1, 'it ends with boundary 1 of its anchor');

-- 31st: 13 of the 28 days from 31 January to 28 February.
SELECT billing_test.subscription(64, p_resource_ref => 'two', p_anchor_day => 31);
SELECT results_eq(
    $$SELECT s.current_period_end, s.anchor_at, s.period_no, i.total FROM pg_temp.sign_up('two') AS s
      INNER JOIN billing.invoice AS i USING (customer_id, subscription_id)$$,
    $$VALUES ('2027-02-28Z'::timestamptz, '2027-01-31'::timestamp, 1, 1392::bigint)$$,
    'the 31st is clamped to 28 February, and 13 of 28 days of 3000 are 1392'
);
-- 14 of 365 days: 36500 x 14 / 365.
SELECT billing_test.subscription(64, 'ANNUAL', 'three', p_anchor_day => 1);
SELECT results_eq(
    $$SELECT s.current_period_end, i.total FROM pg_temp.sign_up('three') AS s
      INNER JOIN billing.invoice AS i USING (customer_id, subscription_id)$$,
    $$VALUES ('2028-02-01Z'::timestamptz, 35100::bigint)$$, 'a year begun on 15 February is 351 of 365 days'
);
SELECT billing_test.subscription(64, p_resource_ref => 'four', p_anchor_day => 15);
SELECT results_eq(
    $$SELECT s.current_period_end, i.total, l.kind FROM pg_temp.sign_up('four') AS s
      INNER JOIN billing.invoice AS i USING (customer_id, subscription_id)
      INNER JOIN billing.invoice_line AS l USING (customer_id, invoice_id)$$,
    $$VALUES ('2027-03-15Z'::timestamptz, 3000::bigint, 'PERIOD')$$, 'a start on the day itself is a full period'
);
SELECT is(s.term_end_at, '2027-04-01Z'::timestamptz, 'a stub is the first of the periods of a term')
FROM billing_api.create_subscription(
    64, 'BASIC', 'k5', 'five', p_payment_behavior => 'GRANT_FIRST', p_anchor_day => 1, p_auto_renew => false, p_term_periods => 2
) AS s;
SELECT billing_worker.renew_due(100, '2027-03-01Z');
SELECT results_eq(
    $$SELECT i.period_start, i.period_end, i.total FROM billing_api.invoice AS i
      INNER JOIN billing_api.subscription AS s USING (subscription_id)
      WHERE s.resource_ref IN ('one', 'two') AND i.kind = 'RENEWAL' ORDER BY i.period_start$$,
    $$VALUES ('2027-02-28Z'::timestamptz, '2027-03-31Z'::timestamptz, 3000::bigint), ('2027-03-01Z', '2027-04-01Z', 3000)$$,
    'the periods after the stub are full ones'
);

-- Pay first: the stub stays as it was invoiced, also when it is paid later.
SELECT billing_test.customer('d');
SELECT billing_test.subscription(128, 'BASIC', 'six', 'PAY_FIRST', 1);
SELECT results_eq(
    $$SELECT s.status, o.anchor_at, o.period_no FROM billing_api.subscription AS s
      INNER JOIN billing.subscription AS o USING (customer_id, subscription_id) WHERE s.customer_id = 128$$,
    $$VALUES ('INCOMPLETE', '2027-02-01'::timestamp, 1)$$, 'an open checkout knows its calendar'
);
SELECT ok(billing_test.collect(p_as_of => '2027-02-16Z') > 0, 'it is paid a day later');
SELECT results_eq(
    $$SELECT s.status, s.current_period_start, s.current_period_end, i.total
      FROM billing_api.subscription AS s INNER JOIN billing.invoice AS i USING (customer_id, subscription_id)
      WHERE s.customer_id = 128$$,
    $$VALUES ('ACTIVE', '2027-02-15Z'::timestamptz, '2027-03-01Z'::timestamptz, 1500::bigint)$$,
    'the stub keeps the period and the amount that were invoiced'
);

SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(64, 'WEEKLY', 'k6', 'seven', p_anchor_day => 1)$$, 'SB101',
    'weeks have no day of the month'
);
SELECT billing_test.refuses(
    format($$SELECT billing_api.create_subscription(64, 'BASIC', 'k7', 'eight', p_anchor_day => %s)$$, 32), 'SB101',
    'months have no day 32'
);

SELECT * FROM finish();
ROLLBACK;
