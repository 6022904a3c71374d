-- The schedule of look-ups: 30 seconds, 2 minutes, then every 15 minutes; the stored request again 15 minutes after the
-- last send, under the same key, only while less than 90 % of its life has passed and no look-up has found it.
BEGIN;
SELECT plan(45);

SELECT billing_test.renewal_invoice();
CREATE TEMPORARY TABLE request AS
SELECT q.* FROM billing_worker.start_attempts('sim', 10, 'worker', '2027-05-01T00:00:00Z') AS q;
CREATE FUNCTION pg_temp.id() RETURNS bigint LANGUAGE sql AS 'SELECT q.attempt_id FROM request AS q';
CREATE FUNCTION pg_temp.attempt()
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(
        ' ', a.status, 'epoch', a.claim_epoch, 'sent', a.send_count, 'asked', a.lookup_count, 'next',
            to_char(a.next_lookup_at, 'HH24:MI:SS')
    )
    FROM billing.payment_attempt AS a WHERE a.attempt_id = pg_temp.id();
$function$;
CREATE FUNCTION pg_temp.due()
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', i.status, to_char(i.next_attempt_at, 'DD HH24:MI:SS')) FROM billing.invoice AS i WHERE i.kind = 'RENEWAL';
$function$;
CREATE FUNCTION pg_temp.ask(p_as_of timestamptz)
RETURNS integer
LANGUAGE sql
AS $function$
    SELECT count(*)::integer FROM billing_worker.attempts_to_look_up('sim', 10, p_as_of, 'asker');
$function$;

SELECT is(pg_temp.attempt(), 'STARTED epoch 1 sent 1 asked 0 next', 'started under epoch 1');
SELECT is(pg_temp.ask('2027-05-01T00:10:00Z'), 0, 'while its worker has it, nobody asks about it');
SELECT billing_test.report(pg_temp.id(), 'UNKNOWN', '2027-05-01T00:00:30Z', 'timeout');
SELECT is(pg_temp.attempt(), 'UNKNOWN epoch 1 sent 1 asked 0 next 00:01:00', 'after a time-out it is asked in 30 seconds');
SELECT is(pg_temp.due(), 'OPEN 01 00:15:00', 'and sent again 15 minutes after the send');
SELECT is(
    (SELECT concat_ws(' ', s.status, i.failure_count) FROM billing.subscription AS s, billing.invoice AS i WHERE i.kind = 'RENEWAL'),
        'ACTIVE 0',
    'it counts as no failure'
);
SELECT is(pg_temp.ask('2027-05-01T00:00:59Z'), 0, 'a second before that nobody asks');
SELECT is(pg_temp.ask('2027-05-01T00:01:00Z'), 1, 'then one does');
SELECT is(pg_temp.attempt(), 'UNKNOWN epoch 2 sent 1 asked 1 next 00:03:00',
    'under the next epoch; the next question is in two minutes, even if this one dies');
SELECT is(pg_temp.ask('2027-05-01T00:04:00Z'), 0, 'while one is asking, nobody else does');
SELECT is(
    (SELECT r.verdict FROM billing_test.report(pg_temp.id(), 'DECLINED', '2027-05-01T00:01:01Z', 'late', p_epoch_off => -1) AS r), 'STALE',
    'what the first worker says now is stale'
);
SELECT billing_test.report(pg_temp.id(), 'UNKNOWN', '2027-05-01T00:01:01Z', 'http_500', 'LOOKUP');
SELECT is(pg_temp.attempt(), 'UNKNOWN epoch 2 sent 1 asked 1 next 00:03:00', 'a look-up that errs changes nothing');
SELECT is(pg_temp.due(), 'OPEN 01 00:15:00', 'nor the time of the next send');
SELECT is(pg_temp.ask('2027-05-01T00:03:00Z'), 1, 'asked after two minutes');
SELECT is(pg_temp.attempt(), 'UNKNOWN epoch 3 sent 1 asked 2 next 00:18:00', 'then every 15 minutes');
SELECT billing_test.report(pg_temp.id(), 'NOT_FOUND', '2027-05-01T00:03:01Z', p_source => 'LOOKUP');
SELECT row_eq(
    $$SELECT a.not_found_count, a.not_found_rounds FROM billing.payment_attempt AS a WHERE a.attempt_id = pg_temp.id()$$, ROW(0, 0),
    '"not found" within the settle window does not count'
);
SELECT is(pg_temp.due(), 'OPEN 01 00:15:00', 'and hastens nothing');

SELECT is(billing_test.start('2027-05-01T00:14:59Z'), NULL, 'before the 15 minutes are over it is not sent again');
CREATE TEMPORARY TABLE resent AS
SELECT q.* FROM billing_worker.start_attempts('sim', 10, 'another', '2027-05-01T00:15:00Z') AS q;
SELECT results_eq(
    $$SELECT q.attempt_id, q.idempotency_key, q.amount, q.currency, q.payment_method_token, q.description FROM resent AS q$$,
    $$SELECT q.attempt_id, q.idempotency_key, q.amount, q.currency, q.payment_method_token, q.description FROM request AS q$$,
    'then the stored request is, with the same key, byte by byte'
);
SELECT is((SELECT q.send_no FROM resent AS q), 2, 'as the second send');
SELECT is(pg_temp.attempt(), 'UNKNOWN epoch 4 sent 2 asked 0 next 00:18:00', 'under another epoch');
SELECT is(pg_temp.due(), 'OPEN', 'and is not due meanwhile');
SELECT is(pg_temp.ask('2027-05-01T00:20:00Z'), 0, 'nor asked about');
SELECT billing_test.report(pg_temp.id(), 'UNKNOWN', '2027-05-01T00:15:30Z', 'timeout');
SELECT is(pg_temp.due(), 'OPEN 01 00:30:00', 'unknown again: another 15 minutes after that send');
SELECT is(pg_temp.attempt(), 'UNKNOWN epoch 4 sent 2 asked 0 next 00:16:00', 'which is asked about in 30 seconds, as the first one was');
SELECT is(billing_test.start('2027-05-01T00:30:00Z'), NULL, 'a look-up that is due goes before a send that is');
SELECT ok(
    (SELECT i.held_until > clock_timestamp() AND i.next_attempt_at = '2027-05-01T00:30Z'
     FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'),
    'which steps aside for some seconds, and does not hold up others meanwhile'
);
SELECT is(pg_temp.ask('2027-05-01T00:30:00Z'), 1, 'it is asked');
UPDATE billing.invoice AS i SET held_until = NULL WHERE i.kind = 'RENEWAL';
SELECT is(billing_test.start('2027-05-01T00:30:00Z'), NULL, 'and not sent while it is');
SELECT billing_test.report(pg_temp.id(), 'UNKNOWN', '2027-05-01T00:30:01Z', 'http_500', 'LOOKUP');
SELECT is(pg_temp.attempt(), 'UNKNOWN epoch 5 sent 2 asked 1 next 00:32:00', 'the look-up errs');
SELECT is(
    (SELECT t.way FROM billing.gateway_account AS g, billing.invoice AS i, billing.triage_invoices(
        ARRAY[ROW(i.customer_id, i.invoice_id)::billing.invoice_key], g, '2027-05-01T00:31:59Z'
    ) AS t WHERE g.code = 'sim' AND i.kind = 'RENEWAL'), 'SEND', 'then it is to be sent'
);

-- Not found: two answers after the settle window make a round, and the third round is a person's.
CREATE FUNCTION pg_temp.not_found(p_as_of timestamptz)
RETURNS text
LANGUAGE plpgsql
AS $function$
BEGIN
    UPDATE billing.payment_attempt AS a SET next_lookup_at = p_as_of WHERE a.attempt_id = pg_temp.id();
    IF pg_temp.ask(p_as_of) <> 1 THEN
        RETURN 'nobody asks';
    END IF;
    PERFORM billing_test.report(pg_temp.id(), 'NOT_FOUND', p_as_of, p_source => 'LOOKUP');
    RETURN (
        SELECT format('%s found nothing, round %s, due %s', a.not_found_count, a.not_found_rounds,
            coalesce(to_char(i.next_attempt_at, 'HH24:MI'), 'never'))
        FROM billing.payment_attempt AS a INNER JOIN billing.invoice AS i USING (customer_id, invoice_id) WHERE a.attempt_id = pg_temp.id()
    );
END;
$function$;
UPDATE billing.invoice AS i SET next_attempt_at = '2027-05-01T23:00Z' WHERE i.kind = 'RENEWAL';
SELECT is(pg_temp.not_found('2027-05-01T00:29:59Z'), '0 found nothing, round 0, due 23:00', 'the window counts from the last send');
SELECT is(pg_temp.not_found('2027-05-01T00:30:00Z'), '1 found nothing, round 0, due 23:00', 'once is not enough');
SELECT is(pg_temp.not_found('2027-05-01T00:31:00Z'), '0 found nothing, round 1, due 00:31',
    'twice sends the same attempt back into the queue');
SELECT is(
    (SELECT array_agg(q.idempotency_key) FROM billing_worker.start_attempts('sim', 10, 'w', '2027-05-01T00:31:00Z') AS q),
    (SELECT array_agg(q.idempotency_key) FROM request AS q), 'with the same key'
);
SELECT billing_test.report(pg_temp.id(), 'UNKNOWN', '2027-05-01T00:31:30Z', 'timeout');
SELECT is(pg_temp.not_found('2027-05-01T01:00:00Z') || '; ' || pg_temp.not_found('2027-05-01T01:01:00Z'),
    '1 found nothing, round 1, due 00:46; 0 found nothing, round 2, due 01:01', 'so does a second round');
SELECT billing_test.start('2027-05-01T01:01:00Z');
SELECT billing_test.report(pg_temp.id(), 'UNKNOWN', '2027-05-01T01:01:30Z', 'timeout');
SELECT is(pg_temp.not_found('2027-05-01T01:30:00Z') || '; ' || pg_temp.not_found('2027-05-01T01:31:00Z'),
    '1 found nothing, round 2, due 01:16; 0 found nothing, round 3, due never', 'the third is a person''s');
SELECT results_eq(
    $$SELECT c.kind, c.amount, c.currency, c.attempt_id FROM billing.reconciliation_case AS c$$,
    $$SELECT 'UNKNOWN_OUTCOME', 3000::bigint, 'USD', pg_temp.id()$$, 'a case is open'
);
SELECT is(pg_temp.due(), 'OPEN', 'nothing is sent any more, but nothing has failed');
SELECT is(pg_temp.not_found('2027-05-01T02:30:00Z') || '; ' || pg_temp.not_found('2027-05-01T02:31:00Z'),
    '1 found nothing, round 3, due never; 0 found nothing, round 4, due never', 'it is asked about all the same');
SELECT is((SELECT count(*) FROM billing.reconciliation_case), 1::bigint, 'in one case');
SELECT billing_test.report(pg_temp.id(), 'SUCCEEDED', '2027-05-01T03:00:00Z', p_source => 'LOOKUP', p_payment_id => 'p', p_amount => 3000);
SELECT is(pg_temp.due(), 'PAID', 'found after all, it is paid');
SELECT is((SELECT count(*) FROM billing.payment_attempt AS a INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
    WHERE i.kind = 'RENEWAL'), 1::bigint, 'there was one attempt all the time');

-- The key grows old: 90 % of 24 hours are 21 h 36 min.
SELECT is(
    (SELECT array_agg(billing.key_is_alive(a, g, a.started_at + s.span) ORDER BY s.span)
     FROM billing.payment_attempt AS a INNER JOIN billing.gateway_account AS g USING (gateway_account_id),
         unnest('{21:35:59,21:36:00,24:00:00}'::interval[]) AS s (span) WHERE a.attempt_id = pg_temp.id()),
    '{t,f,f}', 'a key is good for 21 hours and 36 minutes of its 24 hours'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
