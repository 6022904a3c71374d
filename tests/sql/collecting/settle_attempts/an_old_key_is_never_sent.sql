-- Once 90 % of the life of a key has passed, the gateway might charge again for it. What was never executed gets a new
-- try; what may have happened is only asked about.
BEGIN;
SELECT plan(21);

CREATE TEMPORARY TABLE scene (name text, invoice_id bigint, attempt_id bigint);
CREATE FUNCTION pg_temp.scene(p_name text)
RETURNS bigint
LANGUAGE plpgsql
AS $function$
DECLARE
    v_invoice_id bigint := billing_test.renewal_invoice(p_name);
    v_attempt_id bigint := billing_test.start('2027-05-01T00:00:00Z');
BEGIN
    INSERT INTO scene VALUES (p_name, v_invoice_id, v_attempt_id);
    RETURN v_attempt_id;
END;
$function$;
CREATE FUNCTION pg_temp.state(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', i.status, coalesce('due ' || to_char(i.next_attempt_at, 'DD HH24:MI'), 'not due'), (
        SELECT string_agg(concat_ws(' ', a.status, 'asked ' || to_char(a.next_lookup_at, 'DD HH24:MI')), ', ' ORDER BY a.attempt_no)
        FROM billing.payment_attempt AS a WHERE a.invoice_id = i.invoice_id
    ))
    FROM billing.invoice AS i INNER JOIN scene AS s USING (invoice_id) WHERE s.name = p_name;
$function$;

-- Unknown until the key is old.
SELECT pg_temp.scene('unknown');
SELECT billing_test.report(s.attempt_id, 'UNKNOWN', '2027-05-01T21:20:59Z', 'timeout') FROM scene AS s WHERE s.name = 'unknown';
UPDATE billing.payment_attempt AS a SET last_sent_at = '2027-05-01T21:20:59Z' WHERE a.status = 'UNKNOWN';
SELECT is(pg_temp.state('unknown'), 'OPEN due 01 00:15 UNKNOWN asked 01 21:21', 'sent at midnight, it is due again since a quarter past');
SELECT is(billing_test.start('2027-05-01T21:36:00Z'), NULL, 'but from 21:36 its key is old');
SELECT is(pg_temp.state('unknown'), 'OPEN not due UNKNOWN asked 01 21:21', 'it is only asked about');
SELECT is(
    (SELECT array_agg(billing.resend_at(a, g, billing_test.result(a.attempt_id, 'UNKNOWN'), 0, '2027-05-01T21:21:29Z') - a.last_sent_at)
     FROM billing.payment_attempt AS a INNER JOIN billing.gateway_account AS g USING (gateway_account_id)
     WHERE a.status = 'UNKNOWN'),
    '{00:15:00}', 'a send 15 minutes and a second before that may be repeated once'
);
UPDATE billing.payment_attempt AS a SET last_sent_at = '2027-05-01T21:21:00Z' WHERE a.status = 'UNKNOWN';
SELECT is(
    (SELECT array_agg(billing.resend_at(a, g, billing_test.result(a.attempt_id, 'UNKNOWN'), 0, '2027-05-01T21:21:30Z'))
     FROM billing.payment_attempt AS a INNER JOIN billing.gateway_account AS g USING (gateway_account_id)
     WHERE a.status = 'UNKNOWN'),
    '{NULL}', 'a second later it may not: the key would be old by then'
);
CREATE FUNCTION pg_temp.not_found(p_name text, p_as_of timestamptz)
RETURNS text
LANGUAGE plpgsql
AS $function$
BEGIN
    PERFORM billing_worker.attempts_to_look_up('sim', 10, p_as_of);
    PERFORM billing_test.report(s.attempt_id, 'NOT_FOUND', p_as_of, p_source => 'LOOKUP') FROM scene AS s WHERE s.name = p_name;
    RETURN pg_temp.state(p_name);
END;
$function$;
SELECT pg_temp.not_found('unknown', '2027-05-01T22:00:00Z');
SELECT is(pg_temp.not_found('unknown', '2027-05-01T22:15:00Z'), 'OPEN not due UNKNOWN asked 01 22:30',
    'not found twice: it stays as it is');
SELECT is((SELECT array_agg(c.kind) FROM billing.reconciliation_case AS c), '{UNKNOWN_OUTCOME}', 'and a person decides');

-- Refused until the key is old: no send was ever executed.
SELECT pg_temp.scene('refused');
SELECT billing_test.report(s.attempt_id, 'NOT_ATTEMPTED', '2027-05-01T00:00:01Z', 'rate_limited') FROM scene AS s WHERE s.name = 'refused';
SELECT is(pg_temp.state('refused'), 'OPEN due 01 00:00 STARTED', 'refused, it waits for its next send');
SELECT billing_test.lapse_holds();
SELECT is(billing_test.start('2027-05-01T21:36:00Z'), NULL, 'when its key is old it is not sent');
SELECT is(pg_temp.state('refused'), 'OPEN due 01 00:00 ABANDONED', 'the try is given up, since nothing of it was executed');
SELECT isnt(billing_test.start('2027-05-01T21:36:00Z'), NULL, 'and the next round makes another');
SELECT is(pg_temp.state('refused'), 'OPEN not due ABANDONED, STARTED', 'with a number and a key of its own');
SELECT is(
    (SELECT count(DISTINCT a.idempotency_key) FROM billing.payment_attempt AS a INNER JOIN scene AS s USING (invoice_id)
        WHERE s.name = 'refused'),
    2::bigint, 'two tries, two keys'
);
SELECT is((SELECT i.failure_count FROM billing.invoice AS i INNER JOIN scene AS s USING (invoice_id) WHERE s.name = 'refused'), 0,
    'it used no rung');

-- Refused when the key has grown old meanwhile.
SELECT pg_temp.scene('refused late');
SELECT billing_test.report(s.attempt_id, 'NOT_ATTEMPTED', '2027-05-01T21:40:00Z', 'rate_limited') FROM scene AS s
    WHERE s.name = 'refused late';
SELECT is(pg_temp.state('refused late'), 'OPEN due 01 21:40 ABANDONED',
    'a refusal under an old key ends the try, and the invoice is due for another');

-- Once sent with an unknown outcome, then refused: it may have happened.
SELECT pg_temp.scene('doubtful');
SELECT billing_test.report(s.attempt_id, 'UNKNOWN', '2027-05-01T00:00:30Z', 'timeout') FROM scene AS s WHERE s.name = 'doubtful';
SELECT billing_test.start('2027-05-01T00:15:00Z');
SELECT billing_test.report(s.attempt_id, 'NOT_ATTEMPTED', '2027-05-01T00:15:01Z', 'rate_limited') FROM scene AS s WHERE s.name = 'doubtful';
SELECT is(pg_temp.state('doubtful'), 'OPEN due 01 00:15 UNKNOWN asked 01 00:01', 'a repeated send that is refused leaves it UNKNOWN');
SELECT billing_test.lapse_holds();
SELECT billing_test.start('2027-05-01T21:36:00Z');
SELECT is(pg_temp.state('doubtful'), 'OPEN not due UNKNOWN asked 01 00:01', 'so that an old key leads to questions, not to another try');

-- Every open attempt is in somebody's hands: leased, asked about, or due with its invoice.
CREATE TEMPORARY VIEW forgotten AS
SELECT s.name, a.status FROM billing.payment_attempt AS a INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
INNER JOIN scene AS s ON s.invoice_id = i.invoice_id
WHERE a.ended_at IS NULL AND a.lease_until IS NULL AND a.next_lookup_at IS NULL AND i.next_attempt_at IS NULL;
SELECT is_empty('SELECT * FROM forgotten', 'no open attempt is forgotten');

-- Its invoice is closed while it waits for the next send.
SELECT pg_temp.scene('closed');
SELECT billing_test.report(s.attempt_id, 'NOT_ATTEMPTED', '2027-05-01T00:00:01Z', 'rate_limited') FROM scene AS s WHERE s.name = 'closed';
SELECT billing_api.cancel_subscription(i.subscription_id, p_as_of => '2027-05-01T00:01:00Z') FROM billing.invoice AS i
INNER JOIN scene AS s USING (invoice_id) WHERE s.name = 'closed';
SELECT is(pg_temp.state('closed'), 'VOID not due ABANDONED', 'a try that waits when its invoice is voided is given up with it');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
