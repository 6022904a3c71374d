BEGIN;
SELECT plan(7);

SELECT billing_test.refuses($$SELECT billing_ops.set_shard(64)$$, 'SB101', 'there are 64 shards');
SELECT billing_test.refuses($$SELECT billing_ops.set_shard(NULL)$$, 'SB101', 'a shard has a number');
SELECT is(d.shard, 5::smallint, 'a new database becomes a shard') FROM billing_ops.set_shard(5) AS d;
SELECT is(billing_test.customer() % 64, 5::bigint, 'its ids name it');
SELECT is(billing_test.plan() % 64, 5::bigint, 'all of them');
SELECT is_empty($$SELECT * FROM billing.check_guards()$$, 'and the integrity check agrees');
SELECT billing_test.refuses($$SELECT billing_ops.set_shard(6)$$, 'SB371', 'a database in use stays what it is');

SELECT * FROM finish();
ROLLBACK;
