-- F13: a 429 is no answer about the payment. Same attempt, same key, after max(Retry-After, 1 s x 2^k up to 60 s).
BEGIN;
SELECT plan(16);

SELECT billing_test.renewal_invoice();
CREATE TEMPORARY TABLE sent (no integer, attempt_id bigint, idempotency_key text, epoch integer);
CREATE FUNCTION pg_temp.send(p_no integer)
RETURNS bigint
LANGUAGE sql
AS $function$
    INSERT INTO sent
    SELECT p_no, q.attempt_id, q.idempotency_key, q.claim_epoch
    FROM billing_worker.start_attempts('sim', 10, 'test', '2027-05-01T00:00:00Z') AS q
    RETURNING attempt_id;
$function$;
CREATE TEMPORARY TABLE told AS SELECT clock_timestamp() AS since;
CREATE FUNCTION pg_temp.holds_for(p_seconds integer)
RETURNS boolean
LANGUAGE sql
AS $function$
    -- By the wall clock, from some instant since the answer was told: however long that took.
    SELECT i.held_until BETWEEN t.since + make_interval(secs => p_seconds) AND clock_timestamp() + make_interval(secs => p_seconds)
    FROM billing.invoice AS i, told AS t
    WHERE i.held_until IS NOT NULL;
$function$;
CREATE FUNCTION pg_temp.lengthen_hold()
RETURNS void
LANGUAGE sql
AS $function$
    UPDATE billing.invoice SET held_until = clock_timestamp() + interval '1 hour' WHERE held_until IS NOT NULL;
$function$;

SELECT pg_temp.send(1);
UPDATE told SET since = clock_timestamp();
SELECT is(
    (SELECT r.verdict || ' ' || r.attempt_status FROM sent AS s, billing_test.report(s.attempt_id, 'NOT_ATTEMPTED', '2027-05-01T00:00:00Z',
        'rate_limited', p_retry_after => 2) AS r),
    'APPLIED STARTED', 'a refusal leaves the attempt as it is'
);
SELECT ok(pg_temp.holds_for(2), 'and holds the invoice for the Retry-After of the gateway');
SELECT row_eq(
    $$SELECT i.status, i.next_attempt_at, i.failure_count, i.attempt_count FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'$$,
    ROW('OPEN'::text, '2027-05-01Z'::timestamptz, 0, 1), 'it is due as before'
);
SELECT pg_temp.lengthen_hold();
SELECT is(pg_temp.send(2), NULL, 'but not sent while it is held');
SELECT billing_test.lapse_holds();
SELECT pg_temp.send(2);
UPDATE told SET since = clock_timestamp();
SELECT billing_test.report(s.attempt_id, 'NOT_ATTEMPTED', '2027-05-01T00:00:00Z', 'rate_limited', p_retry_after => 2) FROM sent AS s
    WHERE s.no = 2;
SELECT ok(pg_temp.holds_for(2), 'the second time, Retry-After 2 and back-off 2 are the same');
SELECT billing_test.lapse_holds();
SELECT pg_temp.send(3);
UPDATE told SET since = clock_timestamp();
SELECT billing_test.report(s.attempt_id, 'NOT_ATTEMPTED', '2027-05-01T00:00:00Z', 'rate_limited', p_retry_after => 2) FROM sent AS s
    WHERE s.no = 3;
SELECT ok(pg_temp.holds_for(4), 'the third time our own back-off is the longer one');
SELECT billing_test.lapse_holds();
SELECT pg_temp.send(4);
SELECT is(
    (SELECT format('%s keys, %s attempts, epochs %s', count(DISTINCT s.idempotency_key), count(DISTINCT s.attempt_id),
        string_agg(s.epoch::text, ',' ORDER BY s.no)) FROM sent AS s),
    '1 keys, 1 attempts, epochs 1,2,3,4', 'four sends of one attempt under one key'
);
SELECT billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:00:10Z') FROM sent AS s WHERE s.no = 4;
SELECT row_eq(
    $$SELECT i.status, i.attempt_count, i.failure_count, i.held_until FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'$$,
    ROW('PAID'::text, 1, 0, NULL::timestamptz), 'at last it is paid, by its first attempt'
);
SELECT is((SELECT a.send_count || ' sends' FROM billing.payment_attempt AS a INNER JOIN sent AS s USING (attempt_id) WHERE s.no = 1),
    '4 sends', 'after four sends');
SELECT is(
    (SELECT s.status || ' ' || billing_test.published(s.subscription_id) FROM billing.subscription AS s),
    'ACTIVE SubscriptionCreated InvoiceOpened InvoicePaid InvoiceOpened InvoicePaid SubscriptionRenewed',
    'the subscription was never past due, and nobody heard of a failure'
);
SELECT is((SELECT count(*) FROM billing.payment_report AS r WHERE r.outcome = 'NOT_ATTEMPTED'), 3::bigint, 'the refusals are on record');

-- The back-off by itself.
SELECT billing_worker.renew_due(1, '2027-06-01T00:00:00Z');
CREATE FUNCTION pg_temp.backs_off(p_refusals integer, p_retry_after numeric, p_seconds integer)
RETURNS boolean
LANGUAGE plpgsql
AS $function$
DECLARE
    v_id bigint;
    v_holds boolean;
BEGIN
    SELECT q.attempt_id INTO STRICT v_id FROM billing_worker.start_attempts('sim', 10, 'test', '2027-06-01T00:00:00Z') AS q;
    UPDATE billing.payment_attempt AS a SET refusal_count = p_refusals, send_count = p_refusals + 1 WHERE a.attempt_id = v_id;
    UPDATE told SET since = clock_timestamp();
    PERFORM billing_test.report(v_id, 'NOT_ATTEMPTED', '2027-06-01T00:00:00Z', p_retry_after => p_retry_after);
    v_holds := pg_temp.holds_for(p_seconds);
    PERFORM billing_test.lapse_holds();
    RETURN v_holds;
END;
$function$;
SELECT is(
    ARRAY(
        SELECT w.refusals
        FROM (VALUES (0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (7, 60), (8, 60)) AS w (refusals, seconds)
        WHERE NOT pg_temp.backs_off(w.refusals, NULL, w.seconds)
    ),
    '{}'::integer[], 'without a Retry-After the back-off doubles from one second to a minute'
);
SELECT ok(pg_temp.backs_off(8, 90, 90), 'a longer Retry-After is honoured');
SELECT ok(pg_temp.backs_off(0, 0, 1), 'one of zero is a second');
SELECT ok(pg_temp.backs_off(0, 0.4, 1), 'so is one of less');
SELECT is((SELECT count(*) FROM billing.payment_attempt AS a WHERE a.status = 'STARTED'), 1::bigint, 'it is still the same attempt');

SELECT * FROM finish();
ROLLBACK;
