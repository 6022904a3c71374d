-- B11, trial end, fixed term: effective at the boundary, whenever it is processed, and never invoiced on the way out.
BEGIN;
SELECT plan(23);

SELECT billing_test.clock('2030-01-01T00:00:00Z');
SELECT billing_api.create_plan(p.code, p.code, p.amount, 'USD', p.unit, p_trial_days => p.trial_days, p_as_of => '2026-01-01T00:00:00Z')
FROM (VALUES ('ANNUAL', 36000::bigint, 'YEAR', 0), ('BASIC', 3000, 'MONTH', 0), ('TRIAL', 3000, 'MONTH', 14))
AS p (code, amount, unit, trial_days);
CREATE TEMPORARY TABLE sold (name text, subscription_id bigint);
CREATE FUNCTION pg_temp.id(p_name text) RETURNS bigint LANGUAGE sql AS 'SELECT x.subscription_id FROM sold AS x WHERE x.name = $1';
CREATE FUNCTION pg_temp.state(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', s.status, s.end_reason, billing.to_rfc3339(s.ended_at), billing.to_rfc3339(s.current_period_end),
        s.next_renewal_at)
    FROM billing.subscription AS s WHERE s.subscription_id = pg_temp.id(p_name);
$function$;

INSERT INTO sold VALUES
('b11', billing_test.paid_subscription(billing_test.customer('b11'), 'ANNUAL', p_as_of => '2027-01-19T07:30:42Z'));
SELECT billing_api.cancel_subscription(pg_temp.id('b11'), true, p_as_of => '2027-06-01T00:00:00Z');
SELECT is(billing_worker.renew_due(10, '2028-01-19T07:30:41Z'), 0, 'B11: a second before its end nothing happens');
SELECT ok(
    billing_api.has_access((SELECT s.customer_id FROM billing.subscription AS s), p_as_of => '2028-01-19T07:30:41Z')
    AND NOT billing_api.has_access((SELECT s.customer_id FROM billing.subscription AS s), p_as_of => '2028-01-19T07:30:42Z'),
    'B11: access ends at that instant, whether it is processed or not'
);
SELECT is(billing_worker.renew_due(10, '2028-03-01T00:00:00Z'), 1, 'B11: processed six weeks late');
SELECT is(
    pg_temp.state('b11'), 'CANCELED period_end 2028-01-19T07:30:42Z 2028-01-19T07:30:42Z',
    'B11: it is CANCELED at exactly the end of its period'
);
SELECT is(
    (SELECT format('%s invoices, %s lines, %s prorated, credit %s',
        count(DISTINCT i.invoice_id), count(l.*), count(l.*) FILTER (WHERE l.kind <> 'PERIOD'),
        coalesce((SELECT sum(b.balance) FROM billing.credit_balance AS b), 0))
     FROM billing.invoice AS i INNER JOIN billing.invoice_line AS l USING (customer_id, invoice_id)),
    '1 invoices, 1 lines, 0 prorated, credit 0', 'B11: without a proration of a day, without credit, without another invoice'
);
SELECT is(
    billing_test.log_of(pg_temp.id('b11')),
    'SubscriptionCreated InvoiceOpened InvoicePaid SubscriptionActivated SubscriptionCancelScheduled SubscriptionCanceled',
    'B11: the log says that it was scheduled and that it ended'
);
SELECT is(
    (SELECT o.payload ->> 'endedAt' FROM billing.outbox_event AS o WHERE o.event_type = 'SubscriptionCanceled'),
    '2028-01-19T07:30:42Z', 'B11: and so does the event'
);
SELECT is(billing_worker.renew_due(10, '2029-06-01T00:00:00Z'), 0, 'B11: it is never due again');

-- Trials.
INSERT INTO sold VALUES
('no method', billing_test.subscription(billing_test.customer('t1', p_token => NULL), 'TRIAL', p_as_of => '2027-04-01T00:00:00Z')),
('method', billing_test.subscription(billing_test.customer('t2'), 'TRIAL', p_as_of => '2027-04-01T00:00:00Z')),
('cancelled', billing_test.subscription(billing_test.customer('t3'), 'TRIAL', p_as_of => '2027-04-01T00:00:00Z'));
SELECT billing_api.cancel_subscription(pg_temp.id('cancelled'), true, p_as_of => '2027-04-02T00:00:00Z');
SELECT is(billing_worker.renew_due(10, '2027-04-16T12:00:00Z'), 3, 'three trials have ended');
SELECT is(
    pg_temp.state('no method'), 'CANCELED no_payment_method 2027-04-15T00:00:00Z 2027-04-15T00:00:00Z',
    'the one without a payment method is CANCELED for that, at the end of the trial'
);
SELECT is(
    pg_temp.state('cancelled'), 'CANCELED period_end 2027-04-15T00:00:00Z 2027-04-15T00:00:00Z', 'the cancelled one as it was asked for'
);
SELECT is(
    pg_temp.state('method'), 'TRIALING 2027-05-15T00:00:00Z 2027-05-15 00:00:00+00',
    'the one with a method stays TRIALING, its first billed period open, until that is paid'
);
SELECT results_eq(
    $$SELECT i.subscription_id, i.kind, i.total, i.period_start, i.status FROM billing.invoice AS i
      WHERE i.subscription_id IN (SELECT x.subscription_id FROM sold AS x WHERE x.name <> 'b11')$$,
    $$SELECT pg_temp.id('method'), 'RENEWAL', 3000::bigint, '2027-04-15Z'::timestamptz, 'OPEN'$$,
    'and only that one is invoiced'
);
SELECT billing_test.collect(p_as_of => '2027-04-16T12:00:00Z');
SELECT is(
    (SELECT s.status || ' ' || billing_test.published(s.subscription_id) FROM billing.subscription AS s
        WHERE s.subscription_id = pg_temp.id('method')),
    'ACTIVE SubscriptionCreated InvoiceOpened InvoicePaid SubscriptionActivated', 'paid, it is ACTIVE, and told to be, not to be renewed'
);

-- Fixed terms.
INSERT INTO sold VALUES
('one period', billing_test.subscription(billing_test.customer('f1'), p_auto_renew => false, p_as_of => '2027-05-01T00:00:00Z')),
('three periods', billing_test.subscription(billing_test.customer('f2'), p_auto_renew => false, p_term_periods => 3,
    p_as_of => '2027-05-31T00:00:00Z'));
SELECT billing_test.collect(p_as_of => '2027-05-31T00:00:00Z');
SELECT billing_worker.renew_due(10, '2027-06-01T00:00:00Z');
SELECT is(pg_temp.state('one period'), 'EXPIRED term_end 2027-06-01T00:00:00Z 2027-06-01T00:00:00Z',
    'without renewal, a subscription has one period');
SELECT billing_worker.renew_due(10, '2027-06-30T00:00:00Z');
SELECT billing_worker.renew_due(10, '2027-07-31T00:00:00Z');
SELECT billing_test.collect(p_as_of => '2027-07-31T00:00:00Z');
SELECT is(pg_temp.state('three periods'), 'ACTIVE 2027-08-31T00:00:00Z 2027-08-31 00:00:00+00', 'a term of three has its third one');
SELECT billing_worker.renew_due(10, '2027-09-15T00:00:00Z');
SELECT is(pg_temp.state('three periods'), 'EXPIRED term_end 2027-08-31T00:00:00Z 2027-08-31T00:00:00Z', 'and is EXPIRED at its end');
SELECT is(
    (SELECT array_agg(i.total ORDER BY i.period_start) FROM billing.invoice AS i WHERE i.subscription_id = pg_temp.id('three periods')),
    '{3000,3000,3000}', 'after three invoices and none for the end'
);

-- An invoice that is still open when the subscription ends at a flag.
INSERT INTO sold VALUES ('open', billing_test.subscription(billing_test.customer('o1'), p_as_of => '2027-10-01T00:00:00Z'));
SELECT billing_api.grant_credit(s.customer_id, 100, 'USD', 'x', 'k', '2027-10-01T00:00:00Z') FROM billing.subscription AS s
WHERE s.subscription_id = pg_temp.id('open');
SELECT billing_test.start('2027-10-01T00:00:00Z');
SELECT billing_api.cancel_subscription(pg_temp.id('open'), true, p_as_of => '2027-10-02T00:00:00Z');
SELECT billing_worker.renew_due(10, '2027-11-01T00:00:00Z');
SELECT is(pg_temp.state('open'), 'CANCELED period_end 2027-11-01T00:00:00Z 2027-11-01T00:00:00Z', 'one that owes is ended all the same');
SELECT row_eq(
    $$SELECT i.status, i.credit_applied, i.next_attempt_at FROM billing.invoice AS i WHERE i.subscription_id = pg_temp.id('open')$$,
    ROW('VOID'::text, 0::bigint, NULL::timestamptz), 'its open invoice is VOID'
);
SELECT is((SELECT sum(b.balance) FROM billing.credit_balance AS b), 100::numeric, 'and what it drew from credit is back');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
