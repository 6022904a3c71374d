BEGIN;
SELECT plan(32);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.customer('poor', p_token => NULL);
SELECT billing_test.plan();
SELECT billing_test.plan('TRIAL', p_trial_days => 14, p_trial_once_per => 'RESOURCE');
SELECT billing_test.plan('FREE_TRIAL', 0, p_trial_days => 14, p_trial_once_per => 'RESOURCE');
CREATE FUNCTION pg_temp.access(p_ref text, p_as_of timestamptz, p_customer_id bigint DEFAULT 64)
RETURNS boolean
LANGUAGE sql
AS $function$
    SELECT billing_api.has_access(p_customer_id, p_ref, p_as_of);
$function$;

SELECT billing_test.paid_subscription(64, p_resource_ref => 'paid');
SELECT ok(pg_temp.access('paid', '2027-01-31 10:30Z'), 'in a billed period there is access, from its first second');
SELECT ok(NOT pg_temp.access('paid', '2027-01-31 10:29:59Z'), 'not before');
SELECT ok(pg_temp.access('paid', '2027-06-30Z'), 'a renewal that is late, for months, costs nobody access');
SELECT is((SELECT count(*) FROM billing.subscription_period), 1::bigint, 'although no period was opened');

SELECT billing_test.subscription(64, 'TRIAL', 'trial');
SELECT ok(pg_temp.access('trial', '2027-02-14 10:29:59Z'), 'in a trial there is access');
SELECT ok(pg_temp.access('trial', '2027-02-14 10:30Z'), 'and after it, since it will be renewed');
SELECT billing_test.subscription(128, 'TRIAL', 'trial');
SELECT ok(pg_temp.access('trial', '2027-02-14 10:29:59Z', 128), 'without a payment method there is access in a trial');
SELECT ok(NOT pg_temp.access('trial', '2027-02-14 10:30Z', 128), 'but not after it, since it will end, whoever is late');
SELECT billing_test.subscription(128, 'FREE_TRIAL', 'free');
SELECT ok(pg_temp.access('free', '2027-02-14 10:30Z', 128), 'a free plan needs no payment method');

SELECT billing_test.subscription(64, p_resource_ref => 'open', p_payment_behavior => 'PAY_FIRST');
SELECT ok(NOT pg_temp.access('open', '2027-01-31 10:30Z'), 'an open checkout gives no access');
SELECT billing_test.subscription(64, p_resource_ref => 'granted');
SELECT ok(pg_temp.access('granted', '2027-01-31 10:30Z'), 'what is granted first does');

SELECT billing_test.subscription(64, p_resource_ref => 'term', p_auto_renew => false, p_term_periods => 2);
SELECT ok(pg_temp.access('term', '2027-03-31 10:29:59Z'), 'a term gives access to its last second, though renewed late');
SELECT ok(NOT pg_temp.access('term', '2027-03-31 10:30Z'), 'and none after it');

SELECT billing_api.cancel_subscription(s.subscription_id, true) FROM billing_api.subscription AS s WHERE s.resource_ref = 'paid';
SELECT ok(pg_temp.access('paid', '2027-02-28 10:29:59Z'), 'one that is to end gives access to the end of its period');
SELECT ok(NOT pg_temp.access('paid', '2027-02-28 10:30Z'), 'and none from there on');
SELECT billing_api.undo_cancel(s.subscription_id) FROM billing_api.subscription AS s WHERE s.resource_ref = 'paid';
SELECT ok(pg_temp.access('paid', '2027-02-28 10:30Z'), 'unless that is undone');

-- Past due: access by policy.
SELECT billing_test.customer('late');
SELECT billing_test.subscription(192, p_resource_ref => 'standard');
SELECT billing_test.subscription(192, p_resource_ref => 'grace', p_dunning_policy => 'store_grace');
SELECT billing_test.subscription(192, p_resource_ref => 'term', p_auto_renew => false, p_term_periods => 1);
SELECT billing_test.subscription(192, p_resource_ref => 'flag');
SELECT billing_api.cancel_subscription(s.subscription_id, true)
FROM billing_api.subscription AS s WHERE s.customer_id = 192 AND s.resource_ref = 'flag';
SELECT ok(billing_test.collect('DECLINED', 'insufficient_funds') >= 4, 'all of them are declined');
SELECT is(
    (SELECT count(*) FROM billing.subscription AS s WHERE s.customer_id = 192 AND s.status = 'PAST_DUE'), 4::bigint, 'and past due'
);
SELECT ok(pg_temp.access('standard', '2027-02-05Z', 192), 'without grace there is access as long as it is past due');
SELECT ok(pg_temp.access('grace', '2027-02-07 10:29:59Z', 192), 'with grace there is access for seven days');
SELECT ok(NOT pg_temp.access('grace', '2027-02-07 10:30Z', 192), 'and none after them');
SELECT ok(pg_temp.access('term', '2027-02-28 10:29:59Z', 192), 'a term that is past due gives access to its end');
SELECT ok(NOT pg_temp.access('term', '2027-02-28 10:30Z', 192), 'and none after it, though dunning goes on');
SELECT ok(NOT pg_temp.access('flag', '2027-02-28 10:30Z', 192), 'neither does one that was to end there');
SELECT ok(NOT pg_temp.access('standard', '2027-01-31 10:29:59Z', 192), 'nobody had access before signing up');

-- Suspension.
UPDATE billing.resource SET suspended_by_admin_at = '2027-01-31Z' WHERE external_ref = 'paid';
SELECT ok(NOT pg_temp.access('paid', '2027-02-01Z'), 'an administrator''s suspension takes access');
UPDATE billing.resource SET suspended_by_admin_at = NULL, suspended_by_billing_at = '2027-01-31Z' WHERE external_ref = 'paid';
SELECT ok(NOT pg_temp.access('paid', '2027-02-01Z'), 'billing''s suspension does');
UPDATE billing.resource SET suspended_by_billing_at = NULL;
UPDATE billing.customer SET status = 'SUSPENDED' WHERE customer_id = 64;
SELECT ok(NOT pg_temp.access('paid', '2027-02-01Z'), 'and that of the customer');
UPDATE billing.customer SET status = 'ACTIVE';

SELECT billing_api.cancel_subscription(s.subscription_id) FROM billing_api.subscription AS s WHERE s.resource_ref = 'paid';
SELECT ok(NOT pg_temp.access('paid', '2027-01-31 10:30Z'), 'what has ended gives none');
SELECT ok(NOT pg_temp.access('nix', '2027-02-01Z'), 'neither does an unknown resource');
SELECT ok(NOT pg_temp.access('paid', '2027-02-01Z', 65), 'nor an unknown customer');
SELECT billing_test.refuses('SELECT billing_api.has_access(64, p_as_of => NULL)', 'SB104', 'at no instant there is no answer');

SELECT * FROM finish();
ROLLBACK;
