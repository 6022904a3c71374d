BEGIN;
SELECT plan(24);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
SELECT billing_ops.create_dunning_policy(
    'patient', '{40 days,80 days}', 'FIRST_FAILURE', p_past_due_renewal => 'HOLD', p_as_of => '2027-01-01T00:00:00Z'
);
SELECT billing_ops.create_dunning_policy(
    'going_on', '{40 days,80 days}', 'FIRST_FAILURE', p_past_due_renewal => 'CONTINUE', p_as_of => '2027-01-01T00:00:00Z'
);
CREATE TEMPORARY TABLE sold (name text, subscription_id bigint);
INSERT INTO sold
SELECT x.name, billing_test.subscription(
    billing_test.customer(x.name), p_dunning_policy => x.policy, p_auto_renew => x.term IS NULL, p_term_periods => x.term,
    p_as_of => '2027-04-01T00:00:00Z'
)
FROM (VALUES
    ('hold', 'patient', NULL::integer), ('continue', 'going_on', NULL), ('flagged', 'patient', NULL), ('term', 'going_on', 1)
) AS x (name, policy, term);
CREATE FUNCTION pg_temp.id(p_name text) RETURNS bigint LANGUAGE sql AS 'SELECT x.subscription_id FROM sold AS x WHERE x.name = $1';
CREATE FUNCTION pg_temp.state(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', s.status, s.current_period_end::date, s.next_renewal_at::date, s.end_reason)
    FROM billing.subscription AS s WHERE s.subscription_id = pg_temp.id(p_name);
$function$;
CREATE FUNCTION pg_temp.invoices(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(format('%s %s', to_char(i.period_start, 'MM-DD'), i.status), ', ' ORDER BY i.period_start)
    FROM billing.invoice AS i WHERE i.subscription_id = pg_temp.id(p_name);
$function$;

-- A flag set before the decline.
SELECT billing_api.cancel_subscription(pg_temp.id('flagged'), true, p_as_of => '2027-04-01T00:00:00Z');
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-04-02T00:00:00Z');
SELECT is(pg_temp.state('hold'), 'PAST_DUE 2027-05-01', 'under HOLD one that is past due is not due for renewal');
SELECT is(pg_temp.state('continue'), 'PAST_DUE 2027-05-01 2027-05-01', 'under CONTINUE it is');
SELECT is(pg_temp.state('flagged'), 'PAST_DUE 2027-05-01 2027-05-01', 'under HOLD one with a flag is due, to be ended at it');
SELECT is(pg_temp.state('term'), 'PAST_DUE 2027-05-01 2027-05-01', 'one with a term under CONTINUE is due as well');
SELECT is(
    (SELECT array_agg(DISTINCT s.past_due_since) FROM billing.subscription AS s), '{2027-04-02 00:00:00+00}'::timestamptz[],
    'past due since the decline'
);

SELECT is(billing_worker.renew_due(10, '2027-05-01T00:00:00Z'), 3, 'at the boundary three are taken up');
SELECT is(pg_temp.invoices('hold'), '04-01 OPEN', 'HOLD opens no period');
SELECT is(pg_temp.invoices('continue'), '04-01 OPEN, 05-01 OPEN', 'CONTINUE opens the next one');
SELECT is(pg_temp.state('continue'), 'PAST_DUE 2027-06-01 2027-06-01', 'and stays past due');
SELECT is(pg_temp.state('flagged'), 'CANCELED 2027-05-01 period_end', 'the flag ends it at the boundary');
SELECT is(pg_temp.invoices('flagged'), '04-01 VOID', 'and voids what it owed');
SELECT is(pg_temp.state('term'), 'PAST_DUE 2027-05-01', 'past due at the end of its term it rests: no period, no end yet');
SELECT is(pg_temp.invoices('term'), '04-01 OPEN', 'and no further invoice, while dunning goes on');
SELECT ok(
    NOT billing_api.has_access(
        (SELECT s.customer_id FROM billing.subscription AS s WHERE s.subscription_id = pg_temp.id('term')),
            p_as_of => '2027-05-01T00:00:00Z'
    ),
    'without access from the end of the term'
);
SELECT is(billing_worker.renew_due(10, '2027-05-20T00:00:00Z'), 0, 'it is not taken up again');

-- Recovery: the passed boundaries follow one by one, the anchor unmoved.
SELECT is(
    (SELECT billing_test.published(pg_temp.id('hold'))), 'SubscriptionCreated InvoiceOpened InvoicePaymentFailed SubscriptionPastDue',
    'before it recovers the world knows that it is past due'
);
SELECT billing_test.start('2027-07-10T00:00:00Z');
SELECT billing_test.report(a.attempt_id, 'SUCCEEDED', '2027-07-10T00:00:00Z')
FROM billing.payment_attempt AS a
INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
WHERE i.subscription_id = pg_temp.id('hold') AND a.status = 'STARTED';
SELECT is(pg_temp.state('hold'), 'ACTIVE 2027-05-01 2027-05-01', 'paid, it is ACTIVE in the period that was paid, and due since its end');
SELECT is(
    ARRAY(SELECT billing_worker.renew_due(10, '2027-07-10T00:00:00Z') FROM generate_series(1, 4)), '{2,2,1,0}',
    'the boundaries that passed are renewed one by one, those of the other as well'
);
SELECT is(pg_temp.invoices('hold'), '04-01 PAID, 05-01 OPEN, 06-01 OPEN, 07-01 OPEN', 'each with its invoice');
SELECT is(pg_temp.invoices('continue'), '04-01 OPEN, 05-01 OPEN, 06-01 OPEN, 07-01 OPEN', 'CONTINUE has caught up too');

-- If the ladder ends instead, what was held is never invoiced; under CONTINUE every open invoice ends with it.
SELECT billing_test.report(a.attempt_id, 'DECLINED', '2027-07-10T00:00:00Z', 'insufficient_funds')
FROM billing.payment_attempt AS a WHERE a.status = 'STARTED';
-- The last rung, 80 days after the first failure, has passed meanwhile.
SELECT billing_test.collect('DECLINED', 'insufficient_funds', '2027-07-10T00:00:00Z');
SELECT is(pg_temp.state('term'), 'EXPIRED 2027-05-01 payment_failed', 'one that has outlived its term expires when its retries are spent');
SELECT is(
    pg_temp.invoices('continue'), '04-01 FAILED, 05-01 FAILED, 06-01 FAILED, 07-01 FAILED',
    'the first ladder to end ends the subscription, and all of its open invoices fail'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
