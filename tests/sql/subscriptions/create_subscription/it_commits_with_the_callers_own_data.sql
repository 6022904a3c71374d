-- What nobody else can do: billing and the caller's own rows in one transaction.
BEGIN;
SELECT plan(3);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
CREATE TEMPORARY TABLE shop_order (order_id integer PRIMARY KEY, subscription_id bigint NOT NULL);
CREATE TEMPORARY TABLE before AS SELECT billing_test.fingerprint() AS rows;

CREATE FUNCTION pg_temp.place_order(p_is_in_stock boolean)
RETURNS void
LANGUAGE plpgsql
AS $function$
BEGIN
    INSERT INTO shop_order SELECT 1, s.subscription_id FROM billing_api.create_subscription(64, 'BASIC', 'order-1') AS s;
    IF NOT p_is_in_stock THEN
        RAISE EXCEPTION USING ERRCODE = 'P0001', MESSAGE = 'out of stock';
    END IF;
END;
$function$;

SELECT throws_ok('SELECT pg_temp.place_order(false)', 'P0001', 'out of stock', 'the caller takes its order back');
SELECT is(billing_test.fingerprint(), (SELECT b.rows FROM before AS b), 'no row of billing is left, no key and no event');
SELECT pg_temp.place_order(true);
SELECT results_eq(
    'SELECT s.status FROM shop_order AS o INNER JOIN billing_api.subscription AS s ON o.subscription_id = s.subscription_id',
    $$VALUES ('INCOMPLETE')$$, 'with the same key the order and its subscription are written together'
);

SELECT * FROM finish();
ROLLBACK;
