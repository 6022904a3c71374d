-- What nobody else can do: billing and the caller's own rows in one transaction.
BEGIN;
SELECT plan(3);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
CREATE TEMPORARY TABLE shop_order (order_id integer PRIMARY KEY, subscription_id bigint NOT NULL);
CREATE TEMPORARY TABLE before AS SELECT billing_test.fingerprint() AS rows;

SAVEPOINT order_is_placed;
INSERT INTO shop_order SELECT 1, s.subscription_id FROM billing_api.create_subscription(64, 'BASIC', 'order-1') AS s;
SELECT is((SELECT count(*) FROM shop_order AS o INNER JOIN billing_api.subscription AS s USING (subscription_id)), 1::bigint,
    'an order and its subscription are written together'
);
ROLLBACK TO SAVEPOINT order_is_placed;
SELECT is_empty('TABLE shop_order', 'when the caller takes it back, the order is gone');
SELECT is(billing_test.fingerprint(), (SELECT b.rows FROM before AS b), 'and no row of billing is left, no key and no event');

SELECT * FROM finish();
ROLLBACK;
