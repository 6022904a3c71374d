BEGIN;
SELECT plan(16);
SELECT billing_test.clock('2027-01-31Z');
SELECT billing_test.plan();
SELECT billing_test.customer('one');
SELECT billing_test.customer('two');
SELECT billing_test.subscription(c.customer_id) FROM billing.customer AS c ORDER BY c.customer_id;
SELECT billing_api.grant_credit(c.customer_id, 100, 'USD', 'gift', 'k') FROM billing.customer AS c;

SELECT ok(billing.in_customer_scope(64), 'without a scope every customer is in it');
SELECT is((SELECT count(*) FROM billing_api.subscription), 2::bigint, 'without a scope all subscriptions are seen');

SELECT set_config('billing.customer_scope', '128', true) <> '';
SELECT ok(billing.in_customer_scope(128), 'the customer of the scope is in it');
SELECT ok(NOT billing.in_customer_scope(64), 'another customer is not');
SELECT results_eq(
    format('SELECT DISTINCT v.customer_id FROM billing_api.%I AS v', v.name), 'SELECT 128::bigint',
    format('billing_api.%s shows the customer of the scope only', v.name)
)
FROM unnest('{customer,resource,payment_method,subscription,invoice,invoice_line,credit_balance}'::text[]) AS v (name);
SELECT billing_test.refuses(s.statement, s.sqlstate, s.description)
FROM (VALUES
    ($$SELECT billing_api.grant_credit(64, 1, 'USD', 'gift', 'k2')$$, 'SB202',
     'a foreign customer is as unknown as a missing one'),
    ($$SELECT billing_api.cancel_subscription(64)$$, 'SB201', 'a foreign subscription is as unknown as a missing one'),
    ($$SELECT billing_api.create_customer('three', 'USD')$$, 'SB313', 'a bound caller makes no customers'),
    ($$SELECT billing_api.create_plan('PRO', 'Pro', 1, 'USD', 'MONTH')$$, 'SB313', 'a bound caller makes no plans')
) AS s (statement, sqlstate, description);
SELECT ok(
    billing_api.has_access(128) AND NOT billing_api.has_access(64), 'a foreign customer has no access for all that is told'
);

SELECT * FROM finish();
ROLLBACK;
