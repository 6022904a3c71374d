-- REQUIRES_ACTION and PROCESSING fence the invoice off: no replacement, no send, no rung, no end, until there is an answer.
BEGIN;
SELECT plan(31);

CREATE TEMPORARY TABLE scene (name text, invoice_id bigint, attempt_id bigint);
CREATE FUNCTION pg_temp.scene(p_name text, p_policy text DEFAULT 'standard')
RETURNS bigint
LANGUAGE plpgsql
AS $function$
DECLARE
    v_invoice_id bigint := billing_test.renewal_invoice(p_name, p_policy);
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
    SELECT concat_ws(' ', i.status, coalesce('due ' || to_char(i.next_attempt_at, 'DD HH24:MI'), 'not due'), 'failed ' || i.failure_count, (
        SELECT string_agg(concat_ws(' ', a.status, 'asked ' || to_char(a.next_lookup_at, 'MM-DD HH24:MI')), ', ' ORDER BY a.attempt_no)
        FROM billing.payment_attempt AS a WHERE a.invoice_id = i.invoice_id
    ))
    FROM billing.invoice AS i INNER JOIN scene AS s USING (invoice_id) WHERE s.name = p_name;
$function$;
CREATE FUNCTION pg_temp.ask(p_name text, p_outcome text, p_as_of timestamptz, p_expires timestamptz DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $function$
BEGIN
    IF NOT EXISTS (
        SELECT FROM billing_worker.attempts_to_look_up('sim', 10, p_as_of) AS q
        INNER JOIN scene AS s USING (attempt_id) WHERE s.name = p_name
    ) THEN
        RETURN 'nobody asks';
    END IF;
    PERFORM billing_test.report(s.attempt_id, p_outcome, p_as_of, p_source => 'LOOKUP', p_action_expires_at => p_expires)
    FROM scene AS s WHERE s.name = p_name;
    RETURN pg_temp.state(p_name);
END;
$function$;

-- The customer must act.
SELECT pg_temp.scene('action');
SELECT billing_test.report(s.attempt_id, 'REQUIRES_ACTION', '2027-05-01T00:01:00Z', p_payment_id => 'a1',
    p_action_expires_at => '2027-05-01T12:00:00Z') FROM scene AS s WHERE s.name = 'action';
SELECT is(pg_temp.state('action'), 'OPEN not due failed 0 REQUIRES_ACTION asked 05-01 12:00', 'it is asked about when the action expires');
SELECT is(
    (SELECT o.payload ->> 'expiresAt' FROM billing.outbox_event AS o WHERE o.event_type = 'InvoiceActionRequired'), '2027-05-01T12:00:00Z',
    'the world is told until when the customer may act'
);
SELECT is((SELECT s.status FROM billing.subscription AS s), 'ACTIVE', 'nobody is past due for it');
SELECT is(billing_test.start('2027-05-01T11:59:59Z'), NULL, 'no replacement is attempted while the action is valid');
SELECT is(pg_temp.ask('action', 'REQUIRES_ACTION', '2027-05-01T11:59:59Z'), 'nobody asks', 'nor does anybody ask');
SELECT matches(
    pg_temp.ask('action', 'REQUIRES_ACTION', '2027-05-01T12:00:00Z'), '^OPEN due 02 1[234]:[0-9]{2} failed 1 DECLINED$',
    'once it has expired, a look-up that still finds it waiting is a soft decline, also where it names no expiry'
);
SELECT row_eq(
    $$SELECT a.decline_code, a.decline_class FROM billing.payment_attempt AS a INNER JOIN scene AS s USING (attempt_id)$$,
    ROW('action_expired'::text, 'SOFT'::text), 'with a code of its own'
);
SELECT is((SELECT s.status FROM billing.subscription AS s), 'PAST_DUE', 'and the subscription is past due');

SELECT pg_temp.scene('no expiry');
SELECT billing_test.report(s.attempt_id, 'REQUIRES_ACTION', '2027-05-01T00:01:00Z') FROM scene AS s WHERE s.name = 'no expiry';
SELECT is(pg_temp.state('no expiry'), 'OPEN not due failed 0 REQUIRES_ACTION asked 05-01 23:01',
    'without an expiry an action is good for 23 hours');
SELECT is(
    pg_temp.ask('no expiry', 'REQUIRES_ACTION', '2027-05-01T23:01:00Z', '2027-05-02T06:00:00Z'),
    'OPEN not due failed 0 REQUIRES_ACTION asked 05-02 06:00', 'a look-up that names a later one extends it'
);
SELECT matches(
    pg_temp.ask('no expiry', 'REQUIRES_ACTION', '2027-05-02T06:00:00Z'), 'failed 1 DECLINED$', 'but not for ever'
);

SELECT pg_temp.scene('acted');
SELECT billing_test.report(s.attempt_id, 'REQUIRES_ACTION', '2027-05-01T00:01:00Z', p_payment_id => 'a3') FROM scene AS s
    WHERE s.name = 'acted';
SELECT billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:05:00Z', p_source => 'WEBHOOK', p_payment_id => 'a3')
FROM scene AS s WHERE s.name = 'acted';
SELECT is(pg_temp.state('acted'), 'PAID not due failed 0 SUCCEEDED', 'the customer has acted');
SELECT pg_temp.scene('expired before it was read');
SELECT billing_test.report(s.attempt_id, 'REQUIRES_ACTION', '2027-05-01T00:01:00Z', p_action_expires_at => '2027-05-01T00:00:30Z')
FROM scene AS s WHERE s.name = 'expired before it was read';
SELECT matches(pg_temp.state('expired before it was read'), '^OPEN due .* failed 1 DECLINED$',
    'an action that has expired already is a soft decline at once');

-- The bank has it in hand.
SELECT pg_temp.scene('bank', 'store_grace');
SELECT billing_test.report(s.attempt_id, 'PROCESSING', '2027-05-01T00:01:00Z', p_payment_id => 'b1') FROM scene AS s WHERE s.name = 'bank';
SELECT is(pg_temp.state('bank'), 'OPEN not due failed 0 PROCESSING asked 05-15 00:00',
    'bank money is asked about after the deadline of the account, 14 days');
SELECT billing_test.collect('UNKNOWN', p_as_of => '2027-05-14T00:00:00Z');
SELECT is(pg_temp.state('bank'), 'OPEN not due failed 0 PROCESSING asked 05-15 00:00', 'meanwhile nothing is attempted');
SELECT is(pg_temp.ask('bank', 'PROCESSING', '2027-05-15T00:00:00Z'), 'OPEN not due failed 0 PROCESSING asked 05-16 00:00',
    'then once a day');
SELECT is(
    (SELECT array_agg(c.kind) FROM billing.reconciliation_case AS c INNER JOIN scene AS s USING (attempt_id) WHERE s.name = 'bank'),
    '{UNKNOWN_OUTCOME}', 'and a person has to look'
);
SELECT pg_temp.ask('bank', 'PROCESSING', '2027-05-16T00:00:00Z');
SELECT is((SELECT count(*) FROM billing.reconciliation_case), 1::bigint, 'in one case, however often it is asked');
SELECT is(
    pg_temp.ask('bank', 'NOT_FOUND', '2027-05-17T00:00:00Z'), 'OPEN not due failed 0 PROCESSING asked 05-17 00:15',
    'a gateway that cannot find it once says little'
);
SELECT is(
    pg_temp.ask('bank', 'NOT_FOUND', '2027-05-17T00:15:00Z'), 'OPEN not due failed 0 PROCESSING asked 05-17 00:30',
    'nor does it go back into the queue when it cannot find it twice: the bank may have it'
);
SELECT throws_ok(
    $$SELECT pg_temp.ask('bank', 'DECLINED', '2027-05-18T00:00:00Z')$$, 'SB101', NULL, 'a decline without a code cannot be read'
);

-- Bank money keeps dunning away, although the ladder is spent and grace is over.
SELECT pg_temp.scene('bank at the end', 'store_grace');
SELECT billing_test.report(s.attempt_id, 'DECLINED', '2027-05-01T00:01:00Z', 'do_not_honor') FROM scene AS s
    WHERE s.name = 'bank at the end';
SELECT billing_test.report(billing_test.start(d.at), 'DECLINED', d.at, 'do_not_honor')
FROM (VALUES ('2027-05-02T00:01:00Z'::timestamptz), ('2027-05-04T00:01:00Z')) AS d (at);
SELECT billing_test.report(billing_test.start('2027-05-06T00:01:00Z'), 'DECLINED', '2027-05-06T00:01:00Z', 'do_not_honor');
SELECT is(
    (SELECT i.dunning_ends_at FROM billing.invoice AS i INNER JOIN scene AS s USING (invoice_id) WHERE s.name = 'bank at the end'),
    '2027-05-08Z'::timestamptz, 'the retries are spent, grace runs to the 8th'
);
SELECT billing_api.add_payment_method(i.customer_id, 'sim', 'tok_debit', p_as_of => '2027-05-07T00:00:00Z')
FROM billing.invoice AS i INNER JOIN scene AS s USING (invoice_id) WHERE s.name = 'bank at the end';
UPDATE scene SET attempt_id = billing_test.start('2027-05-07T00:00:00Z') WHERE name = 'bank at the end';
SELECT billing_test.report(s.attempt_id, 'PROCESSING', '2027-05-07T00:01:00Z') FROM scene AS s WHERE s.name = 'bank at the end';
SELECT is(billing_worker.end_dunning(10, '2027-05-09T00:00:00Z'), 0, 'with bank money under way nothing is ended');
SELECT billing_test.report(s.attempt_id, 'DECLINED', '2027-05-10T00:00:00Z', 'returned', 'LOOKUP') FROM scene AS s
    WHERE s.name = 'bank at the end';
SELECT is(
    (SELECT s.status || ' ' || s.end_reason FROM billing.subscription AS s
        INNER JOIN billing.invoice AS i USING (customer_id, subscription_id)
     INNER JOIN scene AS x USING (invoice_id) WHERE x.name = 'bank at the end'),
    'EXPIRED payment_failed', 'once the bank has declined, it is'
);

-- A success that has to be confirmed.
UPDATE billing.gateway_account SET confirm_success = true;
SELECT pg_temp.scene('confirm');
SELECT is(
    (SELECT concat_ws(' ', r.verdict, r.attempt_status, r.invoice_status) FROM scene AS s,
        billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:00:02Z', p_payment_id => 'c1') AS r WHERE s.name = 'confirm'),
    'APPLIED UNKNOWN OPEN', 'where the account wants it confirmed, the answer to a send pays nothing yet'
);
SELECT is(pg_temp.state('confirm'), 'OPEN not due failed 0 UNKNOWN asked 05-01 00:00', 'it is asked about at once, and not sent again');
SELECT is(
    (SELECT q.gateway_payment_id FROM billing_worker.attempts_to_look_up('sim', 10, '2027-05-01T00:00:02Z') AS q
     INNER JOIN scene AS s USING (attempt_id) WHERE s.name = 'confirm'),
    'c1', 'by the payment that it named'
);
SELECT billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:00:03Z', p_source => 'LOOKUP', p_payment_id => 'c1') FROM scene AS s
WHERE s.name = 'confirm';
SELECT is(pg_temp.state('confirm'), 'PAID not due failed 0 SUCCEEDED', 'the look-up confirms it');
SELECT is((SELECT count(*) FROM billing.payment_attempt AS a WHERE a.gateway_payment_id = 'c1'), 1::bigint, 'once');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
