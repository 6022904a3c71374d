BEGIN;
SELECT plan(13);
SELECT billing_test.customer('c', p_token => NULL);

-- Not a test database: the clock is the start of this transaction.
SELECT is(
    billing.require_as_of(billing.now() + interval '0.9 seconds'), billing.now(), 'an instant is cut to whole seconds'
);
SELECT is(
    billing.require_as_of(billing.now() - interval '5 minutes'), billing.now() - interval '5 minutes',
    'five minutes back are allowed'
);
SELECT is(
    billing.require_as_of(billing.now() - interval '3 years'), billing.now() - interval '3 years',
    'an operator may reach further back'
);
SELECT billing_test.refuses(s.statement, 'SB104', s.description, s.role)
FROM (VALUES
    ($$SELECT billing.require_as_of(NULL)$$, 'NULL is refused', NULL),
    ($$SELECT billing.require_as_of('infinity')$$, 'infinity is refused', NULL),
    ($$SELECT billing.require_as_of('-infinity')$$, 'minus infinity is refused', NULL),
    ($$SELECT billing.require_as_of(billing.now() + interval '1 second')$$, 'the future is refused, even to an operator', NULL),
    ($$SELECT * FROM billing_api.grant_credit(64, 100, 'USD', 'gift', 'k', '1969-12-31Z')$$,
     'an instant before 1970 is refused', NULL),
    ($$SELECT * FROM billing_api.grant_credit(64, 100, 'USD', 'gift', 'k', now() - interval '301 seconds')$$,
     'an internal system cannot reach further back than five minutes', 'billing_app'),
    ($$SELECT * FROM billing_api.grant_credit(64, 100, 'USD', 'gift', 'k', now() + interval '2 seconds')$$,
     'an internal system cannot reach into the future', 'billing_app'),
    ($$SELECT * FROM billing_worker.renew_due(10, now() - interval '301 seconds')$$,
     'neither can a worker', 'billing_worker')
) AS s (statement, description, role);
SELECT lives_ok(
    $$SELECT billing_test.run_as('billing_operator',
      $q$SELECT * FROM billing_api.grant_credit(64, 100, 'USD', 'gift', 'k', now() - interval '90 days')$q$)$$,
    'an operator can, through the same function'
);

SELECT billing_ops.set_clock(NULL) FROM billing_test.make_test_database();
SELECT is(
    billing.require_as_of('2031-05-01 00:00:00.5Z'), '2031-05-01Z'::timestamptz,
    'a test database takes any instant, since its tests drive time by it'
);

SELECT * FROM finish();
ROLLBACK;
