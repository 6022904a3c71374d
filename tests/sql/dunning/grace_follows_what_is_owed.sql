-- Several invoices fail: access lasts as long as the first grace of those that are still owed.
BEGIN;
SELECT plan(15);
SELECT billing_test.plans();
SELECT billing_ops.create_dunning_policy('slow', '{20 days,20 days}', p_grace => '41 days', p_past_due_renewal => 'CONTINUE');
CREATE FUNCTION pg_temp.state(p_subscription_id bigint)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', s.status, billing_test.shown(s.access_until))
    FROM billing.subscription AS s WHERE s.subscription_id = p_subscription_id;
$function$;
CREATE FUNCTION pg_temp.invoice(p_subscription_id bigint, p_start timestamptz)
RETURNS bigint
LANGUAGE sql
RETURN (SELECT i.invoice_id FROM billing.invoice AS i WHERE i.subscription_id = p_subscription_id AND i.period_start = p_start);

SELECT billing_test.paid(x.name, 'BASIC', '2027-04-01Z', p_dunning_policy => 'slow')
FROM (VALUES ('pays May'), ('forgiven'), ('pays June')) AS x (name);
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-05-01Z');
SELECT is(pg_temp.state(64), 'PAST_DUE 2027-06-11', 'May fails: access for 41 days from its start');
SELECT billing_worker.renew_due(10, '2027-06-01Z');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-06-01Z');
SELECT is(pg_temp.state(64), 'PAST_DUE 2027-06-11', 'June fails as well: the grace of May still ends first');

-- May is paid; what is owed is June, from 1 June.
SELECT billing_api.retry_invoice(pg_temp.invoice(64, '2027-05-01Z'), p_as_of => '2027-06-05Z');
SELECT billing_test.collect(p_as_of => '2027-06-05Z');
SELECT is(pg_temp.state(64), 'PAST_DUE 2027-07-12', 'May is paid: access by the grace of June');
SELECT ok(
    billing_api.has_access(64, NULL, '2027-07-11 23:59:59Z') AND NOT billing_api.has_access(64, NULL, '2027-07-12Z'),
    'which is what access goes by'
);
-- The same where May is forgiven, and nothing changes where June is paid.
SELECT billing_api.void_invoice(pg_temp.invoice(128, '2027-05-01Z'), p_as_of => '2027-06-05Z');
SELECT is(pg_temp.state(128), 'PAST_DUE 2027-07-12', 'May is forgiven: access by the grace of June');
SELECT billing_api.retry_invoice(pg_temp.invoice(192, '2027-06-01Z'), p_as_of => '2027-06-05Z');
SELECT billing_test.collect(p_as_of => '2027-06-05Z');
SELECT is(pg_temp.state(192), 'PAST_DUE 2027-06-11', 'June is paid: the grace of May ends as it did');

-- What has not failed yet ends no access, until it does.
SELECT billing_api.retry_invoice(pg_temp.invoice(64, '2027-06-01Z'), p_as_of => '2027-06-30Z');
SELECT billing_test.start('2027-06-30Z');
SELECT billing_worker.renew_due(10, '2027-07-01Z');
SELECT billing_test.report(a.attempt_id, 'SUCCEEDED', '2027-07-01Z', p_payment_id => 'june')
FROM billing.payment_attempt AS a
WHERE a.invoice_id = pg_temp.invoice(64, '2027-06-01Z') AND a.status = 'STARTED';
SELECT is(pg_temp.state(64), 'PAST_DUE', 'all that failed is paid, July is still to be tried: no grace runs');
SELECT ok(billing_api.has_access(64, NULL, '2027-07-30Z'), 'and access goes on');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-07-02Z');
SELECT is(pg_temp.state(64), 'PAST_DUE 2027-08-11', 'July fails: access by its own grace');
SELECT billing_api.retry_invoice(pg_temp.invoice(64, '2027-07-01Z'), p_as_of => '2027-07-03Z');
SELECT billing_test.collect(p_as_of => '2027-07-03Z');
SELECT is(pg_temp.state(64), 'ACTIVE', 'the last one is paid: ACTIVE, and nothing limits access');
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o WHERE o.event_type = 'SubscriptionRecovered' AND o.aggregate_id = 64), 1::bigint,
    'which the world is told once'
);

SELECT is_empty(
    $$SELECT o.event_type FROM billing.outbox_event AS o WHERE o.payload ? 'row'$$, 'the world is not told what is for the log alone'
);
SELECT isnt_empty(
    $$SELECT e.event_type FROM billing.subscription_event AS e
      WHERE e.event_type = 'InvoicePaid' AND e.row_changes ->> 'access_until' = '2027-07-12T00:00:00+00:00'$$,
    'the log says which payment gave it'
);
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
