BEGIN;
SELECT plan(11);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
CREATE TEMPORARY TABLE sold (name text, at timestamptz, customer_id bigint, subscription_id bigint);
INSERT INTO sold (name, at) VALUES
('a', '2027-04-01T10:50:00Z'), ('b', '2027-04-01T10:10:00Z'), ('c', '2027-04-01T09:59:59Z'), ('d', '2027-04-01T11:00:00Z');
CREATE FUNCTION pg_temp.sell(p_name text)
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    v_customer_id bigint := billing_test.customer(p_name);
BEGIN
    UPDATE sold AS s
    SET customer_id = v_customer_id, subscription_id = billing_test.paid_subscription(v_customer_id, p_as_of => s.at)
    WHERE s.name = p_name;
END;
$function$;
SELECT pg_temp.sell(x.name) FROM (VALUES ('a'), ('b'), ('c'), ('d')) AS x (name);

CREATE FUNCTION pg_temp.claim(
    p_limit integer, p_as_of timestamptz, p_shard integer DEFAULT 0, p_shards integer DEFAULT 1, p_run_id bigint DEFAULT NULL
)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(s.name, ' ' ORDER BY k.place)
    FROM unnest(billing.claim_due_subscriptions(p_limit, p_as_of, p_shard, p_shards, p_run_id)) WITH ORDINALITY
        AS k (customer_id, subscription_id, place)
    INNER JOIN sold AS s USING (customer_id, subscription_id);
$function$;

SELECT is(pg_temp.claim(10, '2027-05-01T09:59:58Z'), NULL, 'a second before the first is due nothing is claimed');
SELECT is(pg_temp.claim(10, '2027-05-01T09:59:59Z'), 'c', 'at its instant it is');
SELECT is(
    pg_temp.claim(10, '2027-05-01T10:20:00Z'), 'b c',
    'within the present hour only what is due, although the index goes by the hour; keys in order'
);
SELECT is(pg_temp.claim(10, '2027-06-01T00:00:00Z'), 'a b c d', 'later all four');
SELECT is(pg_temp.claim(1, '2027-06-01T00:00:00Z'), 'c', 'the oldest hour comes first');
SELECT is(pg_temp.claim(2, '2027-06-01T00:00:00Z'), 'a c', 'then the next hour, in key order within it');
SELECT is(billing.claim_due_subscriptions(10, '2027-01-01Z', 0, 1, NULL), '{}'::billing.subscription_key[],
    'nothing due is an empty array, not NULL');
SELECT is(
    concat_ws('|', pg_temp.claim(10, '2027-06-01Z', 0, 2), pg_temp.claim(10, '2027-06-01Z', 1, 2)),
    CASE (SELECT s.customer_id / 64 % 2 FROM sold AS s WHERE s.name = 'a') WHEN 0 THEN 'a c|b d' ELSE 'b d|a c' END,
    'shards part the customers'
);
SELECT is(
    (SELECT string_agg(pg_temp.claim(10, '2027-06-01Z', n, 7), ' ') FROM generate_series(0, 6) AS n) ~ '^([a-d] ?){4}$', true,
    'any number of shards covers all of them'
);

UPDATE billing.subscription AS s SET catch_up_run_id = 64, catch_up_periods = 3, version = s.version + 1
FROM sold AS x WHERE x.subscription_id = s.subscription_id AND x.name IN ('a', 'c');
SELECT is(pg_temp.claim(10, '2027-06-01Z', p_run_id => 64), 'b d', 'a run leaves out what it has advanced three times');
SELECT is(pg_temp.claim(10, '2027-06-01Z', p_run_id => 128), 'a b c d', 'another run takes it up');

SELECT * FROM finish();
ROLLBACK;
