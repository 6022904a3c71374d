-- Steps of a renewal on rows that are not as they should be, and the same steps for one overdue subscription.
BEGIN;
SELECT plan(16);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
SELECT billing_test.paid_subscription(billing_test.customer('c'), p_as_of => '2027-04-01T00:00:00Z');
CREATE TEMPORARY TABLE planned AS
SELECT
    ARRAY[ROW(s.customer_id, s.subscription_id)::billing.subscription_key] AS keys,
    billing.plan_renewals(ARRAY[ROW(s.customer_id, s.subscription_id)::billing.subscription_key]) AS renewals
FROM billing.subscription AS s;

SELECT throws_ok(
    $$SELECT billing.renew_claimed(ARRAY[ROW(1, 1)::billing.subscription_key], '2027-05-01Z', NULL)$$, 'SB901',
    '0 of 1 subscriptions were planned', 'a claimed row that is not there is noticed'
);
SELECT throws_ok(
    $$SELECT billing.renew_claimed(p.keys || ARRAY[ROW(1, 1)::billing.subscription_key], '2027-05-01Z', NULL) FROM planned AS p$$, 'SB901',
    '1 of 2 subscriptions were planned', 'also among others'
);
SELECT is((SELECT count(*) FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'), 0::bigint, 'and nothing was written');

-- Another session was faster: the plan is of an older version.
UPDATE billing.subscription AS s SET version = s.version + 1;
SELECT throws_ok(
    'SELECT billing.advance_subscriptions(p.renewals, NULL) FROM planned AS p', 'SB901', '0 of 1 subscriptions were advanced',
    'a plan of an older version advances nothing, and says so'
);
-- A period or an invoice that is there already.
SELECT lives_ok('SELECT billing.open_periods(p.renewals) FROM planned AS p', 'a planned period is opened');
SELECT throws_ok('SELECT billing.open_periods(p.renewals) FROM planned AS p', '23505', NULL, 'and not twice');
SELECT lives_ok($$SELECT billing.issue_invoices(p.renewals, '2027-05-01Z') FROM planned AS p$$, 'a planned invoice is issued');
SELECT throws_ok($$SELECT billing.issue_invoices(p.renewals, '2027-05-01Z') FROM planned AS p$$, '23505', NULL, 'and not twice');
SELECT lives_ok(
    $$SELECT billing.open_periods('{}'), billing.issue_invoices('{}', '2027-05-01Z'), billing.draw_credit('{}', '2027-05-01Z'),
      billing.record_renewals('{}', '2027-05-01Z'), billing.advance_subscriptions('{}', NULL)$$,
    'nothing planned is nothing to do'
);
SELECT is(billing.endings_of('{}'), '{}'::billing.ending[], 'and ends nothing');

-- What an API call does before it changes an overdue subscription: boundaries strictly before it, one by one.
SELECT billing_test.paid_subscription(billing_test.customer('overdue'), p_as_of => '2027-04-15T00:00:00Z');
CREATE FUNCTION pg_temp.overdue(p_as_of timestamptz)
RETURNS date
LANGUAGE sql
AS $function$
    SELECT (billing.renew_overdue(s.subscription_id, p_as_of)).current_period_end::date
    FROM billing.subscription AS s ORDER BY s.subscription_id DESC LIMIT 1;
$function$;
SELECT is(pg_temp.overdue('2027-05-15T00:00:00Z'), '2027-05-15'::date, 'the boundary itself is not renewed');
SELECT is(pg_temp.overdue('2027-07-15T00:00:00Z'), '2027-07-15'::date, 'those before it are');
SELECT is(
    (SELECT array_agg(i.period_start::date ORDER BY i.invoice_id) FROM billing.invoice AS i
     WHERE i.kind = 'RENEWAL' AND i.subscription_id = (SELECT max(s.subscription_id) FROM billing.subscription AS s)),
    '{2027-05-15,2027-06-15}'::date[], 'each with its invoice, the oldest first'
);
SELECT is(pg_temp.overdue('2027-07-15T00:00:00Z'), '2027-07-15'::date, 'once');
SELECT throws_ok($$SELECT billing.renew_overdue(1, '2027-07-15Z')$$, 'SB201', NULL, 'an unknown subscription is refused');

-- One that is parked is left to whoever unparks it.
UPDATE billing.subscription AS s SET next_renewal_at = NULL, parked_at = '2027-08-01Z', park_reason = 'x', version = s.version + 1;
SELECT is(pg_temp.overdue('2027-12-31T00:00:00Z'), '2027-07-15'::date, 'one that is parked stays as it is');

SELECT * FROM finish();
ROLLBACK;
