-- B05, B06: nobody renewed for months.
BEGIN;
SELECT plan(21);

SELECT billing_test.clock('2029-01-01T00:00:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
SELECT billing_test.paid_subscription(billing_test.customer('b05'), p_as_of => '2027-01-15T00:00:00Z');

-- Down from 10 February to 20 May.
SELECT is(
    ARRAY(SELECT billing_worker.renew_due(100, '2027-05-20T00:00:00Z') FROM generate_series(1, 6)),
    '{1,1,1,1,0,0}', 'B05: one call renews one period; after four nothing is due'
);
SELECT results_eq(
    $$SELECT i.period_start, i.period_end, i.total, i.status, i.next_attempt_at FROM billing.invoice AS i
      WHERE i.kind = 'RENEWAL' ORDER BY i.invoice_id$$,
    $$VALUES ('2027-02-15Z'::timestamptz, '2027-03-15Z'::timestamptz, 3000::bigint, 'OPEN', '2027-05-20Z'::timestamptz),
      ('2027-03-15Z', '2027-04-15Z', 3000, 'OPEN', '2027-05-20Z'),
      ('2027-04-15Z', '2027-05-15Z', 3000, 'OPEN', '2027-05-20Z'),
      ('2027-05-15Z', '2027-06-15Z', 3000, 'OPEN', '2027-05-20Z')$$,
    'B05: each missed period has its own invoice, the oldest first, due when it was issued'
);
SELECT is((SELECT sum(i.total) FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'), 12000::numeric, 'B05: 12000 in all');
SELECT row_eq(
    $$SELECT s.status, s.current_period_start, s.current_period_end, s.next_renewal_at FROM billing.subscription AS s$$,
    ROW('ACTIVE'::text, '2027-05-15Z'::timestamptz, '2027-06-15Z'::timestamptz, '2027-06-15Z'::timestamptz),
    'B05: the current period is that of May, and June is due next'
);
SELECT is(billing_test.collect(p_as_of => '2027-05-20T00:00:00Z'), 4, 'B05: each is charged');
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o WHERE o.event_type = 'SubscriptionRenewed'), 4::bigint,
    'B05: and announced once paid'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'B05: no event number is missing or repeated');
SELECT billing_api.cancel_subscription(s.subscription_id, p_as_of => '2027-05-20T00:00:00Z') FROM billing.subscription AS s;

SELECT billing_test.paid_subscription(billing_test.customer('b06'), p_as_of => '2027-01-15T00:00:00Z');
CREATE FUNCTION pg_temp.run(p_calls integer)
RETURNS TABLE (taken integer[], run billing.billing_run)
LANGUAGE plpgsql
AS $function$
DECLARE
    v_run_id bigint := billing_worker.start_renewal_run('test', '2028-02-01T00:00:00Z');
BEGIN
    taken := ARRAY(SELECT billing_worker.renew_due(100, '2028-02-01T00:00:00Z', p_run_id => v_run_id) FROM generate_series(1, p_calls));
    SELECT r.* INTO run FROM billing_worker.finish_renewal_run(v_run_id) AS r;
    RETURN NEXT;
END;
$function$;
CREATE TEMPORARY TABLE runs AS SELECT 1 AS no, r.* FROM pg_temp.run(5) AS r;

SELECT is((SELECT r.taken FROM runs AS r), '{1,1,1,0,0}', 'B06: a run advances a subscription by three periods and no more');
SELECT row_eq(
    $$SELECT (r.run).status, (r.run).due_at_start, (r.run).renewed, (r.run).ended, (r.run).parked, (r.run).limit_reached FROM runs AS r$$,
    ROW('DONE'::text, 1::bigint, 3::bigint, 0::bigint, 0::bigint, 1::bigint),
    'B06: and says that one subscription reached the limit'
);
SELECT is(
    ARRAY(SELECT i.period_start::date FROM billing.invoice AS i INNER JOIN billing.subscription AS s USING (subscription_id)
          WHERE i.kind = 'RENEWAL' AND s.status = 'ACTIVE' ORDER BY i.invoice_id),
    '{2027-02-15,2027-03-15,2027-04-15}'::date[], 'B06: the oldest three'
);
SELECT is(
    (SELECT s.next_renewal_at FROM billing.subscription AS s WHERE s.status = 'ACTIVE'), '2027-05-15Z'::timestamptz,
    'B06: it is still due'
);
INSERT INTO runs SELECT 2, r.* FROM pg_temp.run(4) AS r;
INSERT INTO runs SELECT 3, r.* FROM pg_temp.run(4) AS r;
INSERT INTO runs SELECT 4, r.* FROM pg_temp.run(4) AS r;
SELECT is((SELECT array_agg(r.taken ORDER BY r.no) FROM runs AS r WHERE r.no > 1), '{{1,1,1,0},{1,1,1,0},{1,1,1,0}}',
    'B06: so do the next three runs');
SELECT is(
    (SELECT array_agg((r.run).limit_reached ORDER BY r.no) FROM runs AS r), '{1,1,1,0}'::bigint[],
    'B06: the fourth reaches the present and no limit'
);
SELECT is(
    (SELECT format('%s invoices, %s periods', count(*), count(DISTINCT i.period_start))
     FROM billing.invoice AS i INNER JOIN billing.subscription AS s USING (subscription_id)
     WHERE i.kind = 'RENEWAL' AND s.status = 'ACTIVE'),
    '12 invoices, 12 periods', 'B06: twelve invoices, none twice'
);
SELECT is(
    (SELECT s.current_period_end FROM billing.subscription AS s WHERE s.status = 'ACTIVE'), '2028-02-15Z'::timestamptz,
    'B06: and it is up to date'
);
SELECT row_eq(
    $$SELECT r.taken, (r.run).billing_run_id FROM pg_temp.run(2) AS r$$, ROW('{0,0}'::integer[], NULL::bigint),
    'B06: a fifth run finds nothing and leaves no trace'
);
SELECT is(
    (SELECT array_agg(DISTINCT p.period_start = lag.ended) FROM (
         SELECT q.period_start, lag(q.period_end) OVER (PARTITION BY q.subscription_id ORDER BY q.period_start) AS ended
         FROM billing.subscription_period AS q
     ) AS p CROSS JOIN LATERAL (SELECT p.ended) AS lag WHERE p.ended IS NOT NULL),
    '{t}', 'each period starts where the one before ended'
);

-- The price in force is the one that the subscription has pinned, however late.
SELECT is((SELECT array_agg(DISTINCT i.total) FROM billing.invoice AS i), '{3000}', 'nothing was merged into one invoice');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is(
    (SELECT count(*) FROM billing.subscription AS s WHERE s.catch_up_periods > 3), 0::bigint,
    'no transaction and no run ever held more than three'
);

SELECT * FROM finish();
ROLLBACK;
