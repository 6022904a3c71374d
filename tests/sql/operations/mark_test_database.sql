BEGIN;
SELECT plan(13);

SELECT billing_test.refuses(
    $$SELECT billing_ops.set_clock('2027-01-31Z')$$, 'SB312', 'the clock of a database that is no test database cannot be set'
);
SELECT billing_test.refuses(
    format('DO $do$ BEGIN PERFORM %s; PERFORM billing_ops.mark_test_database(); END $do$', s.before), 'SB312', s.description
)
FROM (VALUES
    ($$billing_ops.create_gateway_account('real', 'stripe', 'LIVE')$$, 'a database with a LIVE account becomes no test database'),
    ($$billing_test.customer('c', p_token => NULL)$$, 'neither does one with customers')
) AS s (before, description);

SELECT ok(d.is_test, 'a new database does') FROM billing_ops.mark_test_database() AS d;
SELECT ok(d.is_test, 'marking it again changes nothing') FROM billing_ops.mark_test_database() AS d;
SELECT is(
    billing_ops.set_clock('2027-01-31 10:30:00.9Z'), '2027-01-31 10:30Z'::timestamptz, 'its clock can be set, to whole seconds'
);
SELECT is(billing.now(), '2027-01-31 10:30Z'::timestamptz, 'and stands still');
SELECT is(billing_ops.set_clock('2026-01-01Z'), '2026-01-01Z'::timestamptz, 'it can be set back');
SELECT is(c.created_at, '2026-01-01Z'::timestamptz, 'and every call reads it') FROM billing_api.create_customer('c', 'USD') AS c;
SELECT is(billing_ops.set_clock(NULL), date_trunc('second', now(), 'UTC'), 'NULL is the real clock again');
SELECT billing_test.refuses($$SELECT billing_ops.set_clock('infinity')$$, 'SB104', 'no clock shows infinity');
SELECT billing_test.refuses(
    $$SELECT billing_ops.create_gateway_account('real', 'stripe', 'LIVE')$$, 'SB101', 'a test database takes no LIVE account'
);
SELECT billing_test.refuses(
    $$SELECT billing_ops.set_clock('2027-01-31Z')$$, '42501', 'an internal system does not set the clock', 'billing_app'
);

SELECT * FROM finish();
ROLLBACK;
