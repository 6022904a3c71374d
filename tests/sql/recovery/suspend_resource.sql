-- An administrator's suspension stands beside that of billing; each lifts its own.
BEGIN;
SELECT plan(18);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64, p_resource_ref => 'shop');

SELECT isnt(
    (SELECT r.suspended_by_admin_at FROM billing_api.suspend_resource(64, 'shop') AS r), NULL, 'it is suspended'
);
SELECT is(billing_api.has_access(64, 'shop'), false, 'no access');
SELECT is(billing_test.published(64) LIKE '%ResourceSuspended', true, 'which is told');
SELECT billing_api.suspend_resource(64, 'shop', p_as_of => '2027-05-02Z');
SELECT is(
    (SELECT r.suspended_by_admin_at FROM billing_api.resource AS r), '2027-05-01Z'::timestamptz, 'since when stays'
);
SELECT is((SELECT r.suspended_by_admin_at FROM billing_api.lift_suspension(64, 'shop') AS r), NULL, 'it is lifted');
SELECT is(billing_api.has_access(64, 'shop'), true, 'access is back');
SELECT is(billing_test.published(64) LIKE '%ResourceSuspended ResourceResumed', true, 'which is told once');
SELECT throws_ok($$SELECT billing_api.suspend_resource(64, 'none')$$, 'SB210', NULL, 'an unknown resource');
SELECT throws_ok($$SELECT billing_api.suspend_resource(63, 'shop')$$, 'SB202', NULL, 'an unknown customer');

-- Both at once: paying lifts neither while the administrator's stands; their lift takes billing's along.
SELECT billing_test.subscription(64, p_resource_ref => 'both', p_dunning_policy => 'store_grace');
SELECT billing_test.collect('DECLINED', 'stolen_card');
SELECT billing_ops.set_clock('2027-05-20Z');
SELECT billing_test.collect() FROM generate_series(1, 4);
SELECT billing_worker.end_dunning(10);
SELECT billing_api.suspend_resource(64, 'both');
SELECT is(
    (SELECT num_nonnulls(r.suspended_by_admin_at, r.suspended_by_billing_at) FROM billing_api.resource AS r WHERE r.resource_ref = 'both'),
    2, 'suspended twice'
);
SELECT billing_api.retry_invoice(i.invoice_id) FROM billing_api.invoice AS i WHERE i.status = 'FAILED';
SELECT is(billing_test.collect(), 1, 'the debt is paid');
SELECT is(
    (SELECT num_nonnulls(r.suspended_by_admin_at, r.suspended_by_billing_at) FROM billing_api.resource AS r WHERE r.resource_ref = 'both'),
    2, 'which lifts nothing while an administrator has it suspended'
);
SELECT billing_api.lift_suspension(64, 'both');
SELECT is(
    (SELECT num_nonnulls(r.suspended_by_admin_at, r.suspended_by_billing_at) FROM billing_api.resource AS r WHERE r.resource_ref = 'both'),
    0, 'their lift takes both away'
);
SELECT lives_ok($$SELECT billing_test.subscription(64, p_resource_ref => 'both')$$, 'and it can be signed up anew');

-- Before anybody has subscribed to it.
INSERT INTO billing.resource (customer_id, external_ref, created_at) VALUES (64, 'early', '2027-05-01Z');
SELECT isnt(
    (SELECT r.suspended_by_admin_at FROM billing_api.suspend_resource(64, 'early', 'k') AS r),
    NULL, 'a resource without a subscription'
);
SELECT is(
    (SELECT e.payload ->> 'resourceRef'
     FROM billing.outbox_event AS e WHERE e.aggregate_type = 'customer' ORDER BY e.aggregate_seq DESC LIMIT 1),
    'early', 'is told of the customer'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing');
SELECT is_empty('SELECT * FROM billing_ops.check_integrity()', 'every promise holds');
SELECT * FROM finish();
ROLLBACK;
