-- What a worker knows of its account: limits, with defaults, and whether it may collect.
BEGIN;
SELECT plan(6);
SELECT billing_test.clock('2027-05-01Z');
SELECT is((SELECT count(*) FROM billing_worker.gateway_accounts()), 0::bigint, 'without accounts there are none');

SELECT billing_ops.create_gateway_account('b', 'simulated', p_request_timeout => '7 seconds', p_lease_margin => '9 seconds');
SELECT billing_ops.create_gateway_account('a', 'simulated');
SELECT billing_ops.set_gateway_rate('b', 'charge', 50);
SELECT billing_ops.set_gateway_rate('b', 'refund', 5);

SELECT results_eq(
    $$SELECT code, charge_rate, look_up_rate, refund_rate FROM billing_worker.gateway_accounts()$$,
    $$VALUES ('a', 200, 200, 200), ('b', 50, 200, 5)$$,
    'each account has its rates, 200 where none is set'
);
SELECT results_eq(
    $$SELECT adapter, request_timeout, lease_margin FROM billing_worker.gateway_accounts() WHERE code = 'b'$$,
    $$VALUES ('simulated', '7 seconds'::interval, '9 seconds'::interval)$$,
    'and its time-outs'
);

SELECT billing_ops.pause_collecting('b');
SELECT results_eq(
    $$SELECT code, collecting_paused FROM billing_worker.gateway_accounts()$$, $$VALUES ('a', false), ('b', true)$$,
    'one account may be stopped'
);
SELECT billing_ops.pause_collecting();
SELECT results_eq(
    $$SELECT code, collecting_paused FROM billing_worker.gateway_accounts()$$, $$VALUES ('a', true), ('b', true)$$,
    'or all of them'
);
SELECT lives_ok(
    $$SELECT billing_test.run_as('billing_worker', 'SELECT * FROM billing_worker.gateway_accounts()')$$,
    'a worker may ask'
);

SELECT * FROM finish();
ROLLBACK;
