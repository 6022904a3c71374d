-- F01, F03, and the shipped policies.
BEGIN;
SELECT plan(29);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_ops.create_dunning_policy('f01', '{1 day,3 days,7 days}', 'FIRST_FAILURE', p_as_of => '2027-01-01T00:00:00Z');
CREATE TEMPORARY TABLE scene (name text, customer_id bigint, subscription_id bigint, invoice_id bigint);
CREATE FUNCTION pg_temp.scene(p_name text, p_policy text)
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    v_invoice_id bigint := billing_test.renewal_invoice(p_name, p_policy);
BEGIN
    INSERT INTO scene
    SELECT p_name, i.customer_id, i.subscription_id, i.invoice_id FROM billing.invoice AS i WHERE i.invoice_id = v_invoice_id;
END;
$function$;
CREATE FUNCTION pg_temp.run(p_from timestamptz, p_until timestamptz, p_step interval, p_code text DEFAULT 'insufficient_funds')
RETURNS void
LANGUAGE plpgsql
AS $function$
-- What workers do, step by step: collect, with every charge declined; end dunning; renew.
DECLARE
    v_at timestamptz;
BEGIN
    FOR v_at IN SELECT a FROM generate_series(p_from, p_until, p_step) AS a LOOP
        PERFORM billing_test.collect('DECLINED', p_code, v_at);
        PERFORM billing_worker.end_dunning(100, v_at);
        PERFORM billing_worker.renew_due(100, v_at);
    END LOOP;
END;
$function$;
CREATE FUNCTION pg_temp.run_exactly(p_until timestamptz)
RETURNS void
LANGUAGE plpgsql
AS $function$
-- Workers that are never late: they collect at the very instant at which the next invoice is due.
DECLARE
    v_at timestamptz;
BEGIN
    LOOP
        SELECT min(i.next_attempt_at) INTO v_at FROM billing.invoice AS i;
        EXIT WHEN v_at IS NULL OR v_at > p_until;
        PERFORM billing_test.collect('DECLINED', 'insufficient_funds', v_at);
    END LOOP;
END;
$function$;
CREATE FUNCTION pg_temp.attempts(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(format('%s: %s', a.attempt_no, to_char(a.started_at, 'MM-DD HH24:MI')), ', ' ORDER BY a.attempt_no)
    FROM billing.payment_attempt AS a INNER JOIN scene AS s USING (invoice_id) WHERE s.name = p_name;
$function$;
CREATE FUNCTION pg_temp.state(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', s.status, s.end_reason, to_char(s.ended_at, 'MM-DD HH24:MI'), i.status)
    FROM billing.subscription AS s INNER JOIN scene AS x USING (subscription_id)
    INNER JOIN billing.invoice AS i ON i.invoice_id = x.invoice_id WHERE x.name = p_name;
$function$;

-- F01, F03: +1, +3, +7 days from the first failure, 120 days of clock.
SELECT pg_temp.scene('f01', 'f01');
SELECT pg_temp.run('2027-05-01T00:00:00Z', '2027-05-01T00:00:00Z', '1 day');
SELECT is(pg_temp.state('f01'), 'PAST_DUE OPEN', 'F03: past due since the first attempt');
SELECT pg_temp.run('2027-05-01T06:00:00Z', '2027-08-29T00:00:00Z', '6 hours');
SELECT is(
    pg_temp.attempts('f01'), '1: 05-01 00:00, 2: 05-02 00:00, 3: 05-04 00:00, 4: 05-08 00:00',
    'F01: exactly four attempts, on 1, 2, 4 and 8 May, numbered 1 to 4; F03: all of one invoice'
);
SELECT is(pg_temp.state('f01'), 'CANCELED payment_failed 05-08 00:00 FAILED', 'F01: then it is CANCELED, the invoice FAILED, on 8 May');
SELECT is(
    (SELECT count(*) FROM billing.invoice AS i INNER JOIN scene AS s USING (subscription_id) WHERE i.period_start = '2027-05-01Z'),
        1::bigint,
    'F03: May has one invoice'
);
SELECT is(
    (SELECT count(*) FROM billing.invoice AS i INNER JOIN scene AS s USING (subscription_id) WHERE i.period_start > '2027-05-01Z'),
        0::bigint,
    'F01: no later period was ever invoiced'
);
SELECT results_eq(
    $$SELECT o.payload ->> 'attemptNo', o.payload ->> 'final', o.payload ->> 'nextAttemptAt' FROM billing.outbox_event AS o
      WHERE o.event_type = 'InvoicePaymentFailed' ORDER BY o.aggregate_seq$$,
    $$VALUES ('1', 'false', '2027-05-02T00:00:00Z'), ('2', 'false', '2027-05-04T00:00:00Z'), ('3', 'false', '2027-05-08T00:00:00Z'),
      ('4', 'true', NULL)$$,
    'F01: each failure tells when the next attempt is, and exactly one is final'
);
SELECT is(
    (SELECT billing_test.published(s.subscription_id) FROM scene AS s),
    'SubscriptionCreated InvoiceOpened InvoicePaid InvoiceOpened InvoicePaymentFailed SubscriptionPastDue InvoicePaymentFailed '
    'InvoicePaymentFailed InvoicePaymentFailed InvoiceFailed SubscriptionCanceled',
    'F01: and the end is told once'
);
SELECT is(
    (SELECT count(DISTINCT a.idempotency_key) FROM billing.payment_attempt AS a INNER JOIN scene AS s USING (invoice_id)), 4::bigint,
    'each try after a decline has a new key'
);

-- standard, exactly on time.
SELECT pg_temp.scene('standard', 'standard');
SELECT pg_temp.run_exactly('2027-05-13T00:00:00Z');
SELECT is((SELECT count(*) FROM billing.payment_attempt AS a INNER JOIN scene AS s USING (invoice_id) WHERE s.name = 'standard'), 4::bigint,
    'standard: four attempts');
SELECT results_eq(
    $$SELECT a.attempt_no, (a.started_at - lag.before) BETWEEN l.least AND l.most
      FROM (SELECT a.attempt_no, a.started_at, lag(a.started_at) OVER (ORDER BY a.attempt_no) AS before FROM billing.payment_attempt AS a
            INNER JOIN scene AS s USING (invoice_id) WHERE s.name = 'standard') AS a
      CROSS JOIN LATERAL (SELECT a.before) AS lag
      INNER JOIN (VALUES (2, '24:00'::interval, '26:00'::interval), (3, '72:00', '74:00'), (4, '120:00', '122:00')) AS l (no, least, most)
          ON l.no = a.attempt_no ORDER BY 1$$,
    'VALUES (2, true), (3, true), (4, true)', 'standard: 1, 3 and 5 days, each after the failure before, and up to two hours'
);
SELECT matches(pg_temp.state('standard'), '^CANCELED payment_failed 05-(09|10) [0-9:]+ FAILED$',
    'standard: the fourth failure ends it at once');

-- store_grace: retries are spent on the 6th, grace ends on the 8th.
SELECT pg_temp.scene('grace', 'store_grace');
SELECT pg_temp.run('2027-05-01T00:00:00Z', '2027-05-07T00:00:00Z', '12 hours');
SELECT is(pg_temp.attempts('grace'), '1: 05-01 00:00, 2: 05-02 00:00, 3: 05-04 00:00, 4: 05-06 00:00', 'store_grace: its retries');
SELECT is(pg_temp.state('grace'), 'PAST_DUE OPEN', 'store_grace: retries spent, but grace still runs');
SELECT is(
    (SELECT billing_api.has_access(s.customer_id, p_as_of => '2027-05-07T23:59:59Z')::text || billing_api.has_access(s.customer_id,
        p_as_of => '2027-05-08T00:00:00Z')::text
     FROM scene AS s WHERE s.name = 'grace'), 'truefalse', 'store_grace: access to the end of grace, whether anybody works or not'
);
SELECT is(billing_worker.end_dunning(100, '2027-05-07T23:59:59Z'), 0, 'store_grace: not a second before');
SELECT is(billing_worker.end_dunning(100, '2027-05-09T00:00:00Z'), 1, 'store_grace: processed a day late');
SELECT is(pg_temp.state('grace'), 'EXPIRED payment_failed 05-09 00:00 FAILED', 'store_grace: EXPIRED');
SELECT is(
    (SELECT r.suspended_by_billing_at FROM billing.resource AS r INNER JOIN scene AS s USING (customer_id) WHERE s.name = 'grace'),
    '2027-05-09Z'::timestamptz, 'store_grace: the resource is suspended'
);
SELECT is(billing_worker.end_dunning(100, '2027-05-10T00:00:00Z'), 0, 'once');
SELECT matches(
    (SELECT billing_test.published(s.subscription_id) FROM scene AS s WHERE s.name = 'grace'),
    'InvoiceFailed SubscriptionExpired ResourceSuspended$', 'and told'
);

-- A late renewal does not eat the grace: it runs from the later of period start and issue.
SELECT billing_test.subscription(billing_test.customer('late'), p_dunning_policy => 'store_grace', p_as_of => '2027-04-01T00:00:00Z');
SELECT billing_test.collect(p_as_of => '2027-04-01T00:00:00Z');
SELECT billing_worker.renew_due(10, '2027-05-06T00:00:00Z');
SELECT billing_test.collect('DECLINED', 'do_not_honor', '2027-05-06T00:00:00Z');
SELECT is(
    (SELECT s.access_until FROM billing.subscription AS s WHERE s.status = 'PAST_DUE'), '2027-05-13Z'::timestamptz,
    'renewed five days late, grace is seven days from then'
);
SELECT pg_temp.run('2027-05-07T00:00:00Z', '2027-05-13T00:00:00Z', '1 day');
SELECT is((SELECT count(*) FROM billing.subscription AS s WHERE s.status = 'PAST_DUE'), 0::bigint, 'and ends then');

-- Paid in time, the ladder is forgotten.
SELECT pg_temp.scene('paid', 'f01');
SELECT pg_temp.run('2027-05-01T00:00:00Z', '2027-05-03T00:00:00Z', '1 day');
SELECT billing_test.collect(p_as_of => '2027-05-04T00:00:00Z');
SELECT is(pg_temp.state('paid'), 'ACTIVE PAID', 'paid on the third attempt, it is ACTIVE');
SELECT row_eq(
    $$SELECT s.past_due_since, s.access_until, s.current_period_start, s.next_renewal_at FROM billing.subscription AS s
      INNER JOIN scene AS x USING (subscription_id) WHERE x.name = 'paid'$$,
    ROW(NULL::timestamptz, NULL::timestamptz, '2027-05-01Z'::timestamptz, '2027-06-01Z'::timestamptz),
        'in the period that was paid, its anchor unmoved'
);
SELECT is(
    (SELECT count(*) FROM billing.subscription_event AS e INNER JOIN scene AS s USING (subscription_id)
     WHERE s.name = 'paid' AND e.event_type = 'SubscriptionRecovered'), 1::bigint, 'with one event'
);

-- Bad arguments.
SELECT billing_test.refuses('SELECT billing_worker.end_dunning(NULL)', 'SB101', 'no limit is refused');
SELECT billing_test.refuses('SELECT billing_worker.end_dunning(1, NULL)', 'SB104', 'no time is refused');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
