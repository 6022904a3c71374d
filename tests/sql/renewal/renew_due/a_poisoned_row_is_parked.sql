-- One row that cannot be renewed for its data stops nobody else.
BEGIN;
SELECT plan(20);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
SELECT billing_test.subscription(billing_test.customer('customer ' || n), p_as_of => '2027-04-01T00:00:00Z')
FROM generate_series(1, 40) AS n;
SELECT billing_test.collect(p_as_of => '2027-04-01T00:00:00Z');
CREATE TEMPORARY TABLE poisoned AS
SELECT s.customer_id, s.subscription_id FROM billing.subscription AS s ORDER BY s.subscription_id LIMIT 1 OFFSET 16;
-- Its timeline runs on beyond what the row says: the next period is there already.
INSERT INTO billing.subscription_period
    (customer_id, subscription_id, period_start, period_end, prev_end, kind, invoice_id, opened_seq)
SELECT p.customer_id, p.subscription_id, p.period_end, '2027-06-01Z', p.period_end AS prev_end, 'BILLED', p.invoice_id, 99
FROM billing.subscription_period AS p INNER JOIN poisoned USING (customer_id, subscription_id);

CREATE TEMPORARY TABLE run AS SELECT billing_worker.start_renewal_run('test', '2027-05-01T00:00:00Z') AS id;
SELECT is(
    (SELECT billing_worker.renew_due(100, '2027-05-01T00:00:00Z', p_run_id => r.id) FROM run AS r), 40, 'a batch of 40 is taken up whole'
);
SELECT is((SELECT count(*) FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'), 39::bigint, '39 are renewed');
SELECT is(
    (SELECT count(DISTINCT i.subscription_id) FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'), 39::bigint,
        'each once, however often the batch was divided'
);
SELECT row_eq(
    $$SELECT s.status, s.next_renewal_at, s.parked_at, left(s.park_reason, 5), s.current_period_end
      FROM billing.subscription AS s INNER JOIN poisoned USING (customer_id, subscription_id)$$,
    ROW('ACTIVE'::text, NULL::timestamptz, '2027-05-01Z'::timestamptz, '23505'::text, '2027-05-01Z'::timestamptz),
    'the poisoned one is parked with its SQLSTATE, its status and due date kept'
);
SELECT row_eq(
    $$SELECT r.renewed, r.parked, r.ended FROM billing.billing_run AS r$$, ROW(39::bigint, 1::bigint, 0::bigint), 'the run counts both'
);
SELECT is((SELECT array_agg(r.status) FROM billing.billing_run AS r), '{RUNNING}', 'and goes on');
SELECT is(
    (SELECT billing_test.log_of(p.subscription_id) FROM poisoned AS p),
    'SubscriptionCreated InvoiceOpened InvoicePaid RenewalParked', 'the log says so'
);
SELECT is(
    (SELECT billing_test.published(p.subscription_id) FROM poisoned AS p), 'SubscriptionCreated InvoiceOpened InvoicePaid',
    'the world is not told: nothing has changed for it'
);
SELECT ok(
    billing_api.has_access((SELECT p.customer_id FROM poisoned AS p), p_as_of => '2027-05-20T00:00:00Z'), 'the customer keeps access'
);
SELECT results_eq(
    'SELECT p.subscription_id FROM billing_ops.parked AS p', 'SELECT p.subscription_id FROM poisoned AS p', 'people on call see it'
);
SELECT is(
    (SELECT billing_worker.renew_due(100, '2027-05-01T00:00:00Z', p_run_id => r.id) FROM run AS r), 0, 'it is not tried again and again'
);
SELECT is_empty(
    $$SELECT h.* FROM billing_test.holes() AS h WHERE h.subscription_id NOT IN (SELECT p.subscription_id FROM poisoned AS p)$$,
    'the numbers of all others are without holes, and no sequence of theirs was lost in the division'
);

-- Once the cause is gone, it catches up.
DELETE FROM billing.subscription_period AS p USING poisoned AS x
WHERE p.subscription_id = x.subscription_id AND p.opened_seq = 99;
SELECT row_eq(
    $$SELECT u.status, u.version > 0 FROM poisoned AS p, billing_ops.unpark(p.subscription_id, '2027-05-02T00:00:00Z') AS u$$,
    ROW('ACTIVE'::text, true), 'unparked'
);
SELECT is(
    ARRAY(SELECT billing_worker.renew_due(100, '2027-05-02T00:00:00Z') FROM generate_series(1, 2)), '{1,0}', 'it is renewed'
);
SELECT row_eq(
    $$SELECT i.period_start, i.total FROM billing.invoice AS i INNER JOIN poisoned USING (customer_id, subscription_id)
      WHERE i.kind = 'RENEWAL'$$,
    ROW('2027-05-01Z'::timestamptz, 3000::bigint), 'for the period that it had missed'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');

-- An amount beyond bigint is poison, too: 10^15 x 1000000.
SELECT billing_api.create_plan('DEAR', 'Dear', 1000000000000000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
UPDATE billing.subscription AS s
SET price_id = (SELECT pr.price_id FROM billing.price AS pr WHERE pr.amount = 1000000000000000), quantity = 1000000,
    version = s.version + 1
WHERE s.subscription_id IN (SELECT x.subscription_id FROM billing.subscription AS x ORDER BY x.subscription_id LIMIT 3);
SELECT is(billing_worker.renew_due(100, '2027-06-01T00:00:00Z'), 40, 'three renewals of more than bigint holds');
SELECT is(
    (SELECT array_agg(DISTINCT left(s.park_reason, 5)) || ARRAY[count(*)::text] FROM billing.subscription AS s
        WHERE s.parked_at IS NOT NULL),
    '{22003,3}', 'are parked for their overflow'
);
SELECT is((SELECT count(*) FROM billing.invoice AS i WHERE i.period_start = '2027-06-01Z'), 37::bigint, 'the other 37 renewed');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'still no event number is missing or repeated');

SELECT * FROM finish();
ROLLBACK;
