-- F08: the mandate is revoked; the renewals of 1 May and 1 June are declined, whatever else the client may say.
BEGIN;
SELECT plan(12);
SELECT billing_test.clock('2028-01-01Z');
SELECT billing_ops.create_dunning_policy(
    'goes_on', '{40 days}', 'FIRST_FAILURE', p_grace => '40 days', p_past_due_renewal => 'CONTINUE', p_as_of => '2027-01-01Z'
);
SELECT billing_test.renewal_invoice('c', 'goes_on');
CREATE FUNCTION pg_temp.renewals()
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(concat_ws(' ', to_char(i.period_start, 'Mon'), i.status, 'due', i.amount_due, 'paid', i.amount_paid, 'failed',
        i.failure_count), ', ' ORDER BY i.period_start)
    FROM billing.invoice AS i WHERE i.kind = 'RENEWAL';
$function$;

-- What the client cannot read is no answer: neither a decline nor a success.
SELECT billing_test.start('2027-05-01Z');
SELECT billing_test.report(a.attempt_id, 'UNKNOWN', '2027-05-01 00:00:01Z', 'client_error') FROM billing.payment_attempt AS a
    WHERE a.status = 'STARTED';
SELECT is(pg_temp.renewals(), 'May OPEN due 3000 paid 0 failed 0', 'an error that the client did not expect pays nothing');
SELECT billing_worker.attempts_to_look_up('sim', 10, '2027-05-01 00:01Z');
SELECT billing_test.report(a.attempt_id, 'DECLINED', '2027-05-01 00:01Z', 'invalid_mandate', 'LOOKUP') FROM billing.payment_attempt AS a
    WHERE a.status = 'UNKNOWN';
SELECT is(pg_temp.renewals(), 'May OPEN due 3000 paid 0 failed 1', 'the revoked mandate is a decline');
SELECT is(
    (SELECT concat_ws(' ', a.status, a.decline_code, a.decline_class, m.blocked_code) FROM billing.payment_attempt AS a
     INNER JOIN billing.payment_method AS m USING (customer_id, payment_method_id) WHERE a.decline_code IS NOT NULL),
    'DECLINED invalid_mandate HARD invalid_mandate', 'for good: the method is not charged by itself any more'
);
SELECT is((SELECT s.status FROM billing.subscription AS s), 'PAST_DUE', 'it is past due');

SELECT is(billing_worker.renew_due(10, '2027-06-01Z'), 1, 'June is renewed');
SELECT is(billing_test.collect(p_as_of => '2027-06-01Z'), 0, 'without a charge');
SELECT is(pg_temp.renewals(), 'May OPEN due 3000 paid 0 failed 1, Jun OPEN due 3000 paid 0 failed 1', 'and is owed as well');
SELECT is(
    (SELECT array_agg(billing_api.has_access(s.customer_id, p_as_of => x.at) ORDER BY x.at)
     FROM billing.subscription AS s, unnest('{2027-06-09 23:59:59Z,2027-06-10Z}'::timestamptz[]) AS x (at)),
    '{t,f}', 'access ends with the grace of May, forty days'
);
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o WHERE o.event_type IN ('InvoicePaid', 'SubscriptionRenewed')), 1::bigint,
    'only the first payment of all was ever told'
);
SELECT is(
    (SELECT count(*) FROM billing.payment_attempt AS a WHERE a.status NOT IN ('SUCCEEDED', 'DECLINED')), 0::bigint,
    'no attempt is left without its end'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
