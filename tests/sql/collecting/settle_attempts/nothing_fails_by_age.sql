-- A03, A04: time alone decides nothing about an attempt whose outcome is unknown, neither hours, nor the end of its key's
-- life, nor the end of grace.
BEGIN;
SELECT plan(21);

CREATE TEMPORARY TABLE scene (name text, invoice_id bigint, attempt_id bigint);
CREATE FUNCTION pg_temp.scene(p_name text, p_policy text DEFAULT 'standard')
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    v_invoice_id bigint := billing_test.renewal_invoice(p_name, p_policy);
BEGIN
    INSERT INTO scene VALUES (p_name, v_invoice_id, billing_test.start('2027-05-01Z'));
    PERFORM billing_test.report(s.attempt_id, 'UNKNOWN', '2027-05-01 00:00:30Z', 'timeout') FROM scene AS s WHERE s.name = p_name;
END;
$function$;
CREATE FUNCTION pg_temp.report(p_name text, p_outcome text, p_as_of timestamptz, p_code text DEFAULT NULL)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT r.verdict
    FROM scene AS s, billing_test.report(
        s.attempt_id, p_outcome, p_as_of, p_code, 'LOOKUP', CASE p_outcome WHEN 'SUCCEEDED' THEN 'pay_' || s.attempt_id END,
        CASE p_outcome WHEN 'SUCCEEDED' THEN 3000 END
    ) AS r
    WHERE s.name = p_name;
$function$;
CREATE FUNCTION pg_temp.asked(p_name text, p_as_of timestamptz)
RETURNS boolean
LANGUAGE sql
AS $function$
    SELECT EXISTS (
        SELECT FROM billing_worker.attempts_to_look_up('sim', 10, p_as_of) AS q
        INNER JOIN scene AS s USING (attempt_id) WHERE s.name = p_name
    );
$function$;
CREATE FUNCTION pg_temp.state(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', i.status, 'paid ' || i.amount_paid, 'failed ' || i.failure_count, s.status, (
        SELECT string_agg(a.attempt_no || ' ' || a.status, ', ' ORDER BY a.attempt_no)
        FROM billing.payment_attempt AS a WHERE a.invoice_id = i.invoice_id
    ))
    FROM billing.invoice AS i INNER JOIN scene AS x USING (invoice_id)
    INNER JOIN billing.subscription AS s ON s.subscription_id = i.subscription_id
    WHERE x.name = p_name;
$function$;

-- A04: ten look-ups in six hours, none of which is answered.
SELECT pg_temp.scene('six hours');
CREATE FUNCTION pg_temp.ten_look_ups_err()
RETURNS integer
LANGUAGE plpgsql
AS $function$
DECLARE
    v_asked integer := 0;
    v_at timestamptz;
BEGIN
    FOR v_at IN SELECT a FROM generate_series('2027-05-01 00:36Z'::timestamptz, '2027-05-01 06:00Z', '36 minutes') AS a LOOP
        v_asked := v_asked + pg_temp.asked('six hours', v_at)::integer;
        PERFORM pg_temp.report('six hours', 'UNKNOWN', v_at, 'timeout');
    END LOOP;
    RETURN v_asked;
END;
$function$;
SELECT is(pg_temp.ten_look_ups_err(), 10, 'A04: asked ten times in six hours, the gateway never answers');
SELECT is(pg_temp.state('six hours'), 'OPEN paid 0 failed 0 ACTIVE 1 UNKNOWN', 'A04: nothing has moved');
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o WHERE o.event_type IN ('InvoicePaymentFailed', 'SubscriptionPastDue')), 0::bigint,
    'A04: and nobody was told of a failure'
);
SELECT is(pg_temp.asked('six hours', '2027-05-01 06:15Z'), true, 'A04: it is asked again');
SELECT pg_temp.report('six hours', 'DECLINED', '2027-05-01 06:15Z', 'insufficient_funds');
SELECT is(pg_temp.state('six hours'), 'OPEN paid 0 failed 1 PAST_DUE 1 DECLINED', 'A04: a definite answer moves it');

-- A03: the gateway is away until its key has lapsed by six hours.
SELECT pg_temp.scene('charged'), pg_temp.scene('never answered');
SELECT is(
    (SELECT count(*) FROM billing_worker.start_attempts('sim', 10, 'w', '2027-05-02 06:00Z') AS q INNER JOIN scene AS s USING (attempt_id)),
    0::bigint, 'A03: after thirty hours nothing is sent'
);
SELECT is(
    (SELECT string_agg(s.name || ' ' || (q.idempotency_key = a.idempotency_key), ', ' ORDER BY s.name)
     FROM billing_worker.attempts_to_look_up('sim', 10, '2027-05-02 06:00Z') AS q
     INNER JOIN scene AS s USING (attempt_id) INNER JOIN billing.payment_attempt AS a USING (attempt_id)),
    'charged true, never answered true', 'A03: but asked about by our reference'
);
SELECT pg_temp.report('charged', 'SUCCEEDED', '2027-05-02 06:00Z');
SELECT is(pg_temp.state('charged'), 'PAID paid 3000 failed 0 ACTIVE 1 SUCCEEDED', 'A03: found, it is paid by its one attempt');
SELECT is(
    (SELECT a.send_count FROM billing.payment_attempt AS a INNER JOIN scene AS s USING (attempt_id) WHERE s.name = 'charged'), 1,
    'A03: which was sent once'
);
SELECT pg_temp.report('never answered', 'UNKNOWN', '2027-05-02 06:00Z', 'http_500');
SELECT billing_ops.set_clock('2027-05-31Z');
SELECT is(
    (SELECT count(*) FROM billing_worker.start_attempts('sim', 10, 'w', '2027-05-31Z') AS q
     WHERE q.customer_id NOT IN (SELECT i.customer_id FROM billing.invoice AS i INNER JOIN scene AS s USING (invoice_id)
                                 WHERE s.name <> 'never answered')),
    0::bigint, 'A03: where look-ups are impossible nothing is sent in a month'
);
SELECT is(pg_temp.state('never answered'), 'OPEN paid 0 failed 0 ACTIVE 1 UNKNOWN', 'A03: it stays unknown');
SELECT is(
    (SELECT v.reason || ' ' || v.age FROM billing_ops.stuck_attempts AS v INNER JOIN scene AS s USING (attempt_id)),
    'outcome_unknown 30 days', 'A03: and stands before the operator'
);

-- The retries are spent; on the last day of grace the customer pays with a new card, and the answer is lost.
SELECT pg_temp.scene('grace', 'store_grace'), pg_temp.scene('declined', 'store_grace');
SELECT pg_temp.report(x.name, 'DECLINED', '2027-05-01 00:01Z', 'insufficient_funds') FROM scene AS x WHERE x.name IN ('grace', 'declined');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', x.at)
FROM unnest('{2027-05-02 00:01Z,2027-05-04 00:01Z,2027-05-06 00:01Z}'::timestamptz[]) AS x (at);
SELECT billing_api.add_payment_method(i.customer_id, 'sim', 'tok_new', p_as_of => '2027-05-07 23:59Z')
FROM billing.invoice AS i INNER JOIN scene AS s USING (invoice_id) WHERE s.name IN ('grace', 'declined');
SELECT is(
    (SELECT count(*) FROM billing_worker.start_attempts('sim', 10, 'w', '2027-05-07 23:59Z') AS q
     WHERE q.payment_method_token = 'tok_new'),
    2::bigint, 'two pay in the last minute of grace'
);
UPDATE scene AS s SET attempt_id = a.attempt_id FROM billing.payment_attempt AS a
WHERE a.invoice_id = s.invoice_id AND a.status = 'STARTED';
SELECT is(billing_worker.end_dunning(10, '2027-05-08Z'), 0, 'with their charges on the way nothing ends');
SELECT billing_test.report(s.attempt_id, 'UNKNOWN', '2027-05-08 00:00:30Z', 'timeout') FROM scene AS s
WHERE s.name IN ('grace', 'declined');
SELECT is(billing_worker.end_dunning(10, '2027-05-09Z'), 0, 'nor while their outcome is unknown');
SELECT is(
    (SELECT array_agg(DISTINCT billing_api.has_access(i.customer_id, p_as_of => '2027-05-08Z'))
     FROM billing.invoice AS i INNER JOIN scene AS s USING (invoice_id) WHERE s.name IN ('grace', 'declined')),
    '{f}', 'access ends with grace all the same'
);
SELECT is(pg_temp.asked('grace', '2027-05-09Z'), true, 'the gateway is asked');
SELECT pg_temp.report('grace', 'SUCCEEDED', '2027-05-09Z'), pg_temp.report('declined', 'DECLINED', '2027-05-09Z', 'insufficient_funds');
SELECT is(
    pg_temp.state('grace'), 'PAID paid 3000 failed 4 ACTIVE 1 DECLINED, 2 DECLINED, 3 DECLINED, 4 DECLINED, 5 SUCCEEDED',
    'the one that was charged recovers'
);
SELECT is(
    pg_temp.state('declined'), 'FAILED paid 0 failed 4 EXPIRED 1 DECLINED, 2 DECLINED, 3 DECLINED, 4 DECLINED, 5 DECLINED',
    'the one that was declined ends with its answer'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
