BEGIN;
SELECT plan(22);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c', p_token => NULL);
SELECT billing_test.plan();

-- The same checkout again.
SELECT is(s.subscription_id, 64::bigint, 'a checkout begins') FROM billing_api.create_subscription(64, 'BASIC', 'k1') AS s;
UPDATE billing.invoice SET next_attempt_at = NULL;
SELECT results_eq(
    $$SELECT s.subscription_id, s.version FROM billing_api.create_subscription(64, 'BASIC', 'k2') AS s$$,
    'VALUES (64::bigint, 1::bigint)', 'the same checkout again is the same subscription, unchanged'
);
SELECT is((SELECT i.next_attempt_at FROM billing.invoice AS i), NULL, 'without a payment method nothing becomes due');
SELECT billing_test.gateway();
SELECT billing_api.add_payment_method(64, 'sim', 'tok_ok');
SELECT is(
    (SELECT i.next_attempt_at FROM billing.invoice AS i), '2027-01-31 10:30Z'::timestamptz, 'a method makes it due'
);
SELECT is(billing_test.collect('DECLINED', 'insufficient_funds'), 1, 'it is declined');
SELECT is((SELECT i.next_attempt_at FROM billing.invoice AS i), NULL, 'and climbs no ladder');
SELECT is(s.status, 'INCOMPLETE', 'the subscription stays INCOMPLETE') FROM billing_api.subscription AS s;
SELECT is(s.subscription_id, 64::bigint, 'the same checkout again is the same subscription still')
FROM billing_api.create_subscription(64, 'BASIC', 'k3', p_as_of => '2027-01-31 10:40Z') AS s;
SELECT is(
    (SELECT i.next_attempt_at FROM billing.invoice AS i), '2027-01-31 10:40Z'::timestamptz, 'and makes its invoice due again'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.start_attempts('sim', 10, 'test', '2027-01-31 10:40Z')), 1::bigint, 'a charge is in flight'
);
UPDATE billing.invoice SET next_attempt_at = NULL;
SELECT billing_api.create_subscription(64, 'BASIC', 'k4', p_as_of => '2027-01-31 10:41Z');
SELECT is(
    (SELECT i.next_attempt_at FROM billing.invoice AS i), NULL, 'while a charge is in flight the same checkout again starts none'
);

-- Other terms.
SELECT results_eq(
    $$SELECT s.subscription_id > 64, s.status, s.quantity FROM billing_api.create_subscription(64, 'BASIC', 'k5', p_quantity => 2) AS s$$,
    $$VALUES (true, 'INCOMPLETE', 2)$$, 'other terms make another subscription'
);
SELECT results_eq(
    $$SELECT s.status, s.end_reason, i.status FROM billing_api.subscription AS s
      INNER JOIN billing_api.invoice AS i USING (subscription_id) WHERE s.subscription_id = 64$$,
    $$VALUES ('EXPIRED', 'checkout_restarted', 'VOID')$$, 'and end the first checkout, whose invoice is void'
);
SELECT is(
    (SELECT count(DISTINCT n.subscription_id)
     FROM (VALUES
         ('a', true, 'standard', NULL::integer, NULL::integer), ('b', true, 'fixed_1357', NULL, NULL),
         ('c', true, 'standard', 15, NULL), ('d', false, 'standard', NULL, NULL), ('e', false, 'standard', NULL, 3),
         ('f', false, 'standard', NULL, 3), ('g', false, 'standard', NULL, NULL), ('h', false, 'standard', NULL, 1)
     ) AS t (name, auto_renew, policy, anchor_day, term)
     CROSS JOIN LATERAL billing_api.create_subscription(
         64, 'BASIC', 'k-' || t.name, 'r', p_auto_renew => t.auto_renew, p_dunning_policy => t.policy,
         p_anchor_day => t.anchor_day, p_term_periods => t.term
     ) AS n),
    6::bigint, 'policy, calendar, renewal and length of the term are terms; an unsaid term is one period'
);

-- A live one.
SELECT billing_test.subscription(64, p_resource_ref => 'live');
SELECT billing_test.refuses(
    format($$SELECT billing_api.create_subscription(64, 'BASIC', 'k6', 'live'%s)$$, s.arguments), 'SB301', s.description,
    p_detail => (SELECT v.subscription_id::text FROM billing_api.subscription AS v WHERE v.resource_ref = 'live')
)
FROM (VALUES
    ('', 'a resource with a live subscription takes no other; its id stands in DETAIL'),
    (', p_trial_days => 7', 'nor one with a trial'),
    (', p_quantity => 5', 'nor one on other terms')
) AS s (arguments, description);
SELECT billing_api.cancel_subscription(s.subscription_id, true) FROM billing_api.subscription AS s WHERE s.resource_ref = 'live';
SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(64, 'BASIC', 'k7', 'live')$$, 'SB301', 'not while it is to end later either'
);
SELECT billing_api.cancel_subscription(s.subscription_id) FROM billing_api.subscription AS s WHERE s.resource_ref = 'live';
SELECT is(s.status, 'INCOMPLETE', 'once it has ended there may be another')
FROM billing_api.create_subscription(64, 'BASIC', 'k8', 'live') AS s;
SELECT is(
    (SELECT count(*) FROM billing_api.subscription AS s WHERE s.resource_ref = 'default'), 2::bigint,
    'no resource named means the resource default'
);

-- Suspended.
UPDATE billing.resource SET suspended_by_admin_at = '2027-01-31Z' WHERE external_ref = 'live';
SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(64, 'BASIC', 'k9', 'live')$$, 'SB310', 'a suspended resource takes no subscription',
    p_detail => 'suspended by an administrator'
);
UPDATE billing.resource SET suspended_by_admin_at = NULL, suspended_by_billing_at = '2027-01-31Z' WHERE external_ref = 'default';
UPDATE billing.invoice SET status = 'FAILED', failed_at = '2027-01-31Z', next_attempt_at = NULL
WHERE quantity = 2 AND status = 'OPEN';
SELECT billing_test.refuses(
    $$SELECT billing_api.create_subscription(64, 'BASIC', 'k9', p_quantity => 2)$$, 'SB310', 'and the error names the debt',
    p_detail => (SELECT format('suspended by billing; owed: 6000 USD on invoice %s', i.invoice_id)
                 FROM billing.invoice AS i WHERE i.status = 'FAILED')
);

SELECT * FROM finish();
ROLLBACK;
