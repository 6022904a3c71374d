BEGIN;
SELECT plan(3);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();

UPDATE billing.customer SET status = 'SUSPENDED';
SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(64, 'BASIC', 'k')$$, 'SB314', 'a suspended customer does not'
);
UPDATE billing.customer SET status = 'CLOSED';
SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(64, 'BASIC', 'k')$$, 'SB314', 'a closed customer does not'
);
UPDATE billing.customer SET status = 'ACTIVE';
SELECT lives_ok(
    $$SELECT billing_api.create_subscription(64, 'BASIC', 'k')$$, 'with the same key once active: errors are not stored'
);

SELECT * FROM finish();
ROLLBACK;
