BEGIN;
SELECT plan(8);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.customer('d');
SELECT billing_test.plan();

CREATE TEMPORARY TABLE first_answer AS
SELECT s.* FROM billing_api.create_subscription(64, 'BASIC', 'k', p_quantity => 2) AS s;
CREATE TEMPORARY TABLE before AS SELECT billing_test.fingerprint() AS rows;

SELECT results_eq(
    $$SELECT s.* FROM billing_api.create_subscription(64, 'BASIC', 'k', p_quantity => 2) AS s$$, 'TABLE first_answer',
    'the same key and arguments get the same row'
);
SELECT results_eq(
    $$SELECT s.* FROM billing_api.create_subscription(64, 'BASIC', 'k', 'default', 2, NULL, 'PAY_FIRST', p_as_of => '2027-02-27Z') AS s$$,
    'TABLE first_answer', 'defaults spelled out and another p_as_of are the same arguments'
);
SELECT set_config('timezone', 'Asia/Kolkata', true) <> '';
SELECT results_eq(
    $$SELECT s.* FROM billing_api.create_subscription(64, 'BASIC', 'k', p_quantity => 2) AS s$$, 'TABLE first_answer',
    'and so they are in another time zone of the session'
);
SELECT set_config('timezone', 'UTC', true) <> '';
SELECT is(billing_test.fingerprint(), (SELECT b.rows FROM before AS b), 'and nothing has changed');

SELECT is(billing_test.collect(), 1, 'the first payment settles');
SELECT results_eq(
    $$SELECT s.* FROM billing_api.create_subscription(64, 'BASIC', 'k', p_quantity => 2) AS s$$, 'TABLE first_answer',
    'the answer stays what it was, whatever has happened since'
);
UPDATE billing.customer SET status = 'CLOSED' WHERE customer_id = 64;
SELECT results_eq(
    $$SELECT s.* FROM billing_api.create_subscription(64, 'BASIC', 'k', p_quantity => 2) AS s$$, 'TABLE first_answer',
    'even for a customer who has closed the account'
);
SELECT is(s.customer_id, 128::bigint, 'another customer may use the same key')
FROM billing_api.create_subscription(128, 'BASIC', 'k', p_quantity => 2) AS s;

SELECT * FROM finish();
ROLLBACK;
