BEGIN;
SELECT plan(18);
SELECT billing_test.clock('2027-01-31 10:30Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64);

SELECT billing_test.refuses(format('SELECT billing_api.cancel_subscription(%s)', s.arguments), s.sqlstate, s.description)
FROM (VALUES
    ('65', 'SB201', 'an unknown subscription'),
    ('NULL', 'SB201', 'no subscription'),
    ('64, NULL', 'SB101', 'neither now nor at period end'),
    ('64, false, NULL', 'SB101', 'no choice for unused time'),
    ($$64, false, 'KEEP'$$, 'SB101', 'an unknown choice for unused time'),
    ($$64, false, repeat('x', 10000000)$$, 'SB101', 'ten megabytes for unused time'),
    ($$64, true, 'REFUND'$$, 'SB101', 'a refund at the end of the period, where nothing is left'),
    ($$64, true, 'CREDIT'$$, 'SB101', 'credit at the end of a period, where no time is left'),
    ('64, p_expected_version => 1', 'SB304', 'another version than expected'),
    ($$64, p_idempotency_key => repeat('k', 256)$$, 'SB101', 'a key of 256 characters'),
    ('64, p_as_of => NULL', 'SB104', 'no p_as_of')
) AS s (arguments, sqlstate, description);

UPDATE billing.database_identity SET is_test = false;
SELECT billing_test.refuses(
    $$SELECT billing_api.cancel_subscription(64, p_unused_time => 'CREDIT', p_as_of => '2027-01-31 10:24:59Z')$$, 'SB104',
    'nobody takes more credit by dating a cancellation back', 'billing_app'
);
UPDATE billing.database_identity SET is_test = true;

SELECT billing_test.refuses(
    'SELECT billing_api.cancel_subscription(64, p_expected_version => 1)', 'SB304', 'the version as it is stands in DETAIL',
    p_detail => (SELECT s.version::text FROM billing.subscription AS s)
);
SELECT is(s.status, 'CANCELED', 'with the version as it is the call goes through')
FROM billing.subscription AS v, billing_api.cancel_subscription(64, p_expected_version => v.version, p_idempotency_key => 'k') AS s;
SELECT is(s.status, 'CANCELED', 'the same key gets the stored answer, before version and status are looked at')
FROM billing_api.cancel_subscription(64, p_expected_version => 1, p_idempotency_key => 'k') AS s;
SELECT billing_test.refuses(
    $$SELECT billing_api.cancel_subscription(64, true, p_idempotency_key => 'k')$$, 'SB305', 'the key with another mode'
);
SELECT billing_test.refuses(
    'SELECT billing_api.cancel_subscription(64, true)', 'SB302', 'an ended one has no period end to come'
);
SELECT billing_test.refuses(
    $$UPDATE billing.subscription SET status = 'ACTIVE', version = version + 1$$, 'SB302', 'and nothing revives it'
);

SELECT * FROM finish();
ROLLBACK;
