BEGIN;
SELECT plan(27);

SELECT billing_test.clock('2027-05-01T00:10:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
SELECT billing_test.subscription(billing_test.customer('renewed ' || n), p_as_of => '2027-04-01T00:00:00Z') FROM generate_series(1, 3) AS n;
SELECT billing_test.collect(p_as_of => '2027-04-01T00:00:00Z');
SELECT billing_worker.renew_due(100, '2027-05-01T00:00:00Z');
SELECT billing_test.subscription(billing_test.customer('checkout ' || n), p_payment_behavior => 'PAY_FIRST',
    p_as_of => '2027-05-01T00:05:00Z')
FROM generate_series(1, 2) AS n;

SELECT is(billing_worker.count_due_invoices('sim', 100, '2027-05-01T00:05:00Z'), ROW(2, 3)::billing.due_count,
    'two wait at the checkout, three in the backlog');
SELECT is(billing_worker.count_due_invoices('sim', 1, '2027-05-01T00:05:00Z'), ROW(1, 1)::billing.due_count, 'counted up to the limit');
SELECT is(billing_worker.count_due_invoices('sim', 100, '2027-05-01T00:04:59Z'), ROW(0, 3)::billing.due_count,
    'at the time that is asked about');

CREATE TEMPORARY TABLE sent (round integer, place bigint, lane text, attempt_id bigint, ref text, key text, epoch integer);
CREATE FUNCTION pg_temp.send(p_round integer, p_limit integer)
RETURNS text
LANGUAGE sql
AS $function$
    WITH r AS (
        INSERT INTO sent
        SELECT p_round, q.place, q.lane, q.attempt_id, q.customer_id::text, q.idempotency_key, q.claim_epoch
        FROM billing_worker.start_attempts('sim', p_limit, 'worker', '2027-05-01T00:05:00Z') WITH ORDINALITY
            AS q (customer_id, attempt_id, claim_epoch, idempotency_key, amount, currency, payment_method_token, description, lane,
                gateway_account, gateway_payment_id, send_no, gateway_intent_id, previous_payment_id, awaits_action, place)
        RETURNING *
    )
    SELECT string_agg(r.lane, ' ' ORDER BY r.place) FROM r;
$function$;
SELECT is(pg_temp.send(1, 1), 'INTERACTIVE', 'who waits at the checkout comes first');
SELECT is(pg_temp.send(2, 3), 'INTERACTIVE BACKLOG BACKLOG', 'then the backlog, up to the limit');
SELECT is(pg_temp.send(3, 100), 'BACKLOG', 'then the rest');
SELECT is(pg_temp.send(4, 100), NULL, 'then nothing');
SELECT is((SELECT count(DISTINCT s.attempt_id) || ' ' || count(DISTINCT s.key) FROM sent AS s), '5 5', 'five attempts with five keys');

SELECT is_empty(
    $$SELECT a.* FROM billing.payment_attempt AS a INNER JOIN sent AS s USING (attempt_id)
      INNER JOIN billing.invoice AS i ON i.customer_id = a.customer_id AND i.invoice_id = a.invoice_id
      WHERE (a.status, a.attempt_no, a.amount, a.currency, a.claim_epoch, a.claimed_by, a.send_count, a.last_sent_at, a.started_at,
          a.payment_method_token)
        IS DISTINCT FROM ('STARTED', 1, 3000::bigint, 'USD', 1, 'worker', 1, '2027-05-01T00:05Z'::timestamptz,
            '2027-05-01T00:05Z'::timestamptz, 'tok_ok')
        OR i.next_attempt_at IS NOT NULL OR i.attempt_count <> 1$$,
    'each attempt is stored with everything that is sent, claimed by its worker, and its invoice is not due meanwhile'
);
SELECT ok(
    (SELECT bool_and(a.lease_until BETWEEN clock_timestamp() + interval '85 seconds' AND clock_timestamp() + interval '91 seconds')
     FROM billing.payment_attempt AS a INNER JOIN sent AS s USING (attempt_id)),
    'under a lease of the time-out of the gateway and a minute, 90 seconds'
);
SELECT is_empty(
    $$SELECT s.key FROM sent AS s INNER JOIN billing.payment_attempt AS a USING (attempt_id)
      WHERE s.key <> (SELECT d.key_prefix FROM billing.database_identity AS d) || '-inv-' || a.invoice_id || '-try-1'$$,
    'keys are made of the prefix of this database, the invoice and the number of the try'
);

-- Leases that lapse.
SELECT billing_test.lapse_leases();
SELECT is(pg_temp.send(5, 100), NULL, 'an attempt whose worker died is not sent again by itself');
SELECT is(
    (SELECT count(*) FROM billing_worker.attempts_to_look_up('sim', 2, '2027-05-01T00:10:00Z', 'asker')), 2::bigint,
    'it is asked about, as many as the limit allows'
);
SELECT is(
    (SELECT string_agg(DISTINCT a.status || ' ' || a.claim_epoch || ' ' || a.claimed_by, ', ') FROM billing.payment_attempt AS a
     WHERE a.lease_until > clock_timestamp()),
    'UNKNOWN 2 asker', 'because the charge may have happened'
);
SELECT is(
    (SELECT count(*) FROM billing_worker.attempts_to_look_up('sim', 100, '2027-05-01T00:10:00Z', 'asker')), 3::bigint, 'then the others'
);
SELECT is_empty(
    $$SELECT a.attempt_id FROM billing.payment_attempt AS a INNER JOIN sent AS s USING (attempt_id)
      WHERE a.next_lookup_at IS DISTINCT FROM '2027-05-01T00:12:00Z'$$,
    'should the asker die as well, others ask two minutes later'
);
SELECT is(
    (SELECT r.verdict FROM sent AS s, billing_test.report(s.attempt_id, 'DECLINED', '2027-05-01T00:10:01Z', 'x', p_epoch_off => -1) AS r
     WHERE s.round = 1), 'STALE', 'the answer of a worker that was thought dead is stale'
);
SELECT is(
    (SELECT r.verdict FROM sent AS s, billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:10:01Z', p_epoch_off => -1) AS r
     WHERE s.round = 1), 'APPLIED', 'unless it is a success'
);

-- Accounts, stops, bad arguments.
SELECT billing_test.gateway('other');
SELECT billing_test.renewal_invoice('another account');
SELECT billing_ops.set_clock('2027-05-01T00:10:00Z');
SELECT is(billing_test.start('2027-05-01T00:10:00Z', 'other'), NULL, 'an account sends what is its own');
SELECT billing_ops.pause_collecting('sim');
SELECT is(billing_test.start('2027-05-01T00:10:00Z'), NULL, 'while collecting through it is stopped, an account sends nothing');
SELECT is(billing_worker.count_due_invoices('sim', 10), ROW(0, 0)::billing.due_count, 'and counts nothing, so that nobody reserves slots');
SELECT billing_ops.resume_collecting('sim');
SELECT billing_ops.pause_collecting(NULL);
SELECT is(billing_test.start('2027-05-01T00:10:00Z'), NULL, 'while collecting is stopped, nobody sends anything');
SELECT billing_ops.resume_collecting(NULL);
SELECT billing_test.refuses($$SELECT billing_worker.start_attempts('sim', NULL, 'w')$$, 'SB101', 'no limit is refused');
SELECT billing_test.refuses($$SELECT billing_worker.start_attempts('sim', 10, NULL)$$, 'SB101', 'nor is a worker without a name allowed');
SELECT billing_test.refuses($$SELECT billing_worker.start_attempts('nobody', 10, 'w')$$, 'SB206', 'an unknown account is refused');
SELECT billing_test.refuses($$SELECT billing_worker.attempts_to_look_up('sim', 0)$$, 'SB101', 'a look-up of none is refused');
SELECT isnt(billing_test.start('2027-05-01T00:10:00Z'), NULL, 'all of which leaves the invoice due');

SELECT * FROM finish();
ROLLBACK;
