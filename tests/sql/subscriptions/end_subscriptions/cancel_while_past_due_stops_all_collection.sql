-- E02, either mode.
BEGIN;
SELECT plan(15);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_ops.create_dunning_policy('e02', '{1 day,7 days,14 days}', 'FIRST_FAILURE', p_as_of => '2027-01-01T00:00:00Z');
CREATE TEMPORARY TABLE scene (mode boolean, subscription_id bigint, invoice_id bigint);
CREATE FUNCTION pg_temp.scene(p_mode boolean)
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    v_invoice_id bigint := billing_test.renewal_invoice('at period end ' || p_mode, 'e02');
BEGIN
    INSERT INTO scene SELECT p_mode, i.subscription_id, i.invoice_id FROM billing.invoice AS i WHERE i.invoice_id = v_invoice_id;
    PERFORM billing_test.collect('DECLINED', 'do_not_honor', '2027-05-01T00:00:00Z');
    PERFORM billing_test.collect('DECLINED', 'do_not_honor', '2027-05-02T00:00:00Z');
    PERFORM billing_api.cancel_subscription(s.subscription_id, p_mode, p_as_of => '2027-05-06T00:00:00Z') FROM scene AS s
        WHERE s.mode = p_mode;
    PERFORM billing_test.collect('SUCCEEDED', NULL, a.at), billing_worker.end_dunning(10, a.at), billing_worker.renew_due(10, a.at)
    FROM generate_series('2027-05-06T00:00:00Z'::timestamptz, '2027-06-30T00:00:00Z', '12 hours') AS a (at);
END;
$function$;

SELECT pg_temp.scene(m.mode) FROM unnest('{f,t}'::boolean[]) AS m (mode);
SELECT results_eq(
    $$SELECT x.mode, s.status, s.end_reason, s.ended_at FROM billing.subscription AS s INNER JOIN scene AS x USING (subscription_id)
        ORDER BY 1$$,
    $$VALUES (false, 'CANCELED', 'requested', '2027-05-06Z'::timestamptz), (true, 'CANCELED', 'requested', '2027-05-06Z')$$,
    'E02: either way it is CANCELED on 6 May'
);
SELECT results_eq(
    $$SELECT x.mode, i.status, i.voided_at, i.next_attempt_at, i.amount_paid FROM billing.invoice AS i
        INNER JOIN scene AS x USING (invoice_id) ORDER BY 1$$,
    $$VALUES (false, 'VOID', '2027-05-06Z'::timestamptz, NULL::timestamptz, 0::bigint), (true, 'VOID', '2027-05-06Z', NULL, 0)$$,
    'E02: the invoice is VOID'
);
SELECT is(
    ARRAY(SELECT DISTINCT a.started_at::date FROM billing.payment_attempt AS a INNER JOIN scene AS x USING (invoice_id) ORDER BY 1),
    '{2027-05-01,2027-05-02}'::date[], 'E02: nothing was attempted after 6 May'
);
SELECT is(
    (SELECT array_agg(DISTINCT billing_test.published(x.subscription_id)) FROM scene AS x),
    ARRAY['SubscriptionCreated InvoiceOpened InvoicePaid InvoiceOpened InvoicePaymentFailed SubscriptionPastDue InvoicePaymentFailed '
        'InvoiceVoided SubscriptionCanceled'],
    'E02: the world hears of the end, and of no reminder after it'
);
SELECT is(
    (SELECT count(*) FROM billing.invoice AS i INNER JOIN scene AS x USING (subscription_id) WHERE i.period_start > '2027-05-01Z'),
        0::bigint,
    'E02: no later period is invoiced'
);
SELECT is_empty(
    $$SELECT p.* FROM billing.subscription_period AS p INNER JOIN scene AS x USING (subscription_id) WHERE p.period_end > '2027-05-06Z'$$,
    'E02: the timeline ends on that day'
);

-- A charge is in flight when it is cancelled: looked up, never sent again; what it brings is late money.
SELECT billing_test.renewal_invoice('in flight');
CREATE TEMPORARY TABLE flight AS SELECT billing_test.start('2027-05-01T00:00:00Z') AS id;
SELECT billing_api.cancel_subscription(i.subscription_id, p_as_of => '2027-05-01T00:00:10Z')
FROM billing.payment_attempt AS a INNER JOIN flight AS f ON f.id = a.attempt_id
    INNER JOIN billing.invoice AS i ON i.invoice_id = a.invoice_id;
SELECT is(
    (SELECT a.status FROM billing.payment_attempt AS a INNER JOIN flight AS f ON f.id = a.attempt_id), 'STARTED',
    'voiding an invoice does not end the attempt in flight'
);
SELECT billing_test.report(f.id, 'UNKNOWN', '2027-05-01T00:00:30Z', 'timeout') FROM flight AS f;
SELECT is(billing_test.start('2027-05-01T01:00:00Z'), NULL, 'its unknown outcome is not sent again');
SELECT is(
    (SELECT array_agg(q.attempt_id) FROM billing_worker.attempts_to_look_up('sim', 10, '2027-05-01T01:00:00Z') AS q),
    (SELECT array_agg(f.id) FROM flight AS f), 'but asked about'
);
SELECT billing_test.report(f.id, 'NOT_FOUND', '2027-05-01T01:00:00Z', p_source => 'LOOKUP') FROM flight AS f;
SELECT is(
    (SELECT a.status FROM billing.payment_attempt AS a INNER JOIN flight AS f ON f.id = a.attempt_id), 'UNKNOWN',
        'not found once it stays open'
);
SELECT billing_worker.attempts_to_look_up('sim', 10, '2027-05-01T02:00:00Z');
SELECT billing_test.report(f.id, 'NOT_FOUND', '2027-05-01T02:00:00Z', p_source => 'LOOKUP') FROM flight AS f;
SELECT is(
    (SELECT a.status FROM billing.payment_attempt AS a INNER JOIN flight AS f ON f.id = a.attempt_id), 'ABANDONED',
        'not found twice it is given up'
);
SELECT is((SELECT count(*) FROM billing.reconciliation_case), 0::bigint, 'for which nobody is called');
SELECT billing_test.report(f.id, 'SUCCEEDED', '2027-05-01T03:00:00Z', p_source => 'WEBHOOK', p_payment_id => 'late') FROM flight AS f;
SELECT is((SELECT array_agg(f.purpose) FROM billing.refund AS f), '{LATE_PAYMENT}', 'money that came all the same is to go back');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
