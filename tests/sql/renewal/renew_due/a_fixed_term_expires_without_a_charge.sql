-- B15 and E07, and the milestone of a well-known exercise about pauses, guarded transitions and fixed terms.
BEGIN;
SELECT plan(20);
SELECT billing_test.plans();
SELECT billing_api.create_plan('PRO_30', 'Pro', 4900, 'USD', 'DAY', 30, p_as_of => '2026-01-01Z');

-- B15: three months from 31 January.
SELECT billing_test.paid('b15', 'BASIC', '2027-01-31Z', p_term_periods => 3);
SELECT billing_worker.renew_due(10, x.at), billing_test.collect(p_as_of => x.at)
FROM unnest('{2027-02-28Z,2027-03-31Z,2027-04-30Z,2027-05-31Z,2027-07-01Z}'::timestamptz[]) AS x (at);
SELECT results_eq(
    'SELECT i.period_start::date, i.amount_paid FROM billing_api.invoice AS i WHERE i.subscription_id = 64 ORDER BY 1',
    $$VALUES ('2027-01-31'::date, 3000::bigint), ('2027-02-28', 3000), ('2027-03-31', 3000)$$, 'B15: three invoices, 9000 in all'
);
SELECT results_eq(
    'SELECT s.status, s.end_reason, s.ended_at FROM billing_api.subscription AS s WHERE s.subscription_id = 64',
    $$VALUES ('EXPIRED', 'term_end', '2027-04-30Z'::timestamptz)$$, 'B15: it expires at the end of the third month'
);
SELECT is_empty(
    $$SELECT l.line_no FROM billing_api.invoice_line AS l INNER JOIN billing_api.invoice AS i USING (invoice_id)
      WHERE i.subscription_id = 64 AND l.kind <> 'PERIOD'$$, 'B15: nothing is prorated at the end'
);
SELECT is(
    (SELECT array_agg(billing_api.has_access(64, NULL, x.at) ORDER BY x.at)
    FROM unnest('{2027-04-29Z,2027-04-30Z}'::timestamptz[]) AS x (at)),
    '{f,f}', 'B15: and there is no access to what has expired'
);
SELECT billing_test.paid('reminder', 'BASIC', '2027-04-01Z', p_term_periods => 1);
SELECT is(
    (SELECT array_agg(billing_api.has_access(128, NULL, x.at) ORDER BY x.at)
     FROM unnest('{2027-04-30 23:59:59Z,2027-05-01Z}'::timestamptz[]) AS x (at)),
    '{t,f}', 'access ends with the term, also while nobody takes it up'
);

-- The exercise: a pause is never billed, a transition that is not allowed is refused, a term expires instead of being charged.
SELECT billing_test.paid('kata', 'PRO_30', '2027-01-01Z');
SELECT is(s.status, 'PAUSED', 'the exercise: pausing moves it to PAUSED')
FROM billing_api.pause_subscription(192, p_as_of => '2027-01-01Z') AS s;
SELECT billing_worker.renew_due(10, '2027-01-31Z');
SELECT is(
    (SELECT count(*)
    FROM billing.payment_attempt AS a INNER JOIN billing.invoice AS i USING (customer_id, invoice_id) WHERE i.subscription_id = 192),
    1::bigint, 'the exercise: a pause is not billed when it would be due'
);
SELECT billing_test.refuses(
    $$SELECT billing_api.pause_subscription(192, p_as_of => '2027-01-31Z')$$, 'SB303', 'the exercise: it cannot be paused twice'
);
SELECT is(s.status, 'ACTIVE', 'the exercise: resuming moves it to ACTIVE')
FROM billing_api.resume_subscription(192, p_as_of => '2027-01-31Z') AS s;
SELECT is(s.status, 'CANCELED', 'the exercise: cancelling moves it to CANCELED')
FROM billing_api.cancel_subscription(192, p_as_of => '2027-01-31Z') AS s;
SELECT billing_test.refuses(
    $$SELECT billing_api.cancel_subscription(192, p_as_of => '2027-01-31Z')$$, 'SB302', 'the exercise: it cannot be cancelled twice'
);
SELECT billing_test.paid('kata term', 'PRO_30', '2027-01-01Z', p_term_periods => 1);
SELECT is((SELECT sum(i.amount_paid)
FROM billing_api.invoice AS i WHERE i.subscription_id = 256)::bigint, 4900::bigint, 'the exercise: the one cycle is charged');
SELECT billing_worker.renew_due(10, '2027-01-31Z');
SELECT is(billing_test.collect(p_as_of => '2027-01-31Z'), 0, 'the exercise: at its end there is no second charge');
SELECT is(s.status, 'EXPIRED', 'the exercise: it has expired') FROM billing_api.subscription AS s WHERE s.subscription_id = 256;

-- E07: renewal turned off after it was paid.
SELECT billing_test.paid('e07', 'BASIC', '2027-04-01Z');
SELECT billing_worker.renew_due(10, '2027-05-01Z');
SELECT billing_test.collect(p_as_of => '2027-05-01Z');
SELECT is(s.current_period_end, '2027-06-01Z'::timestamptz, 'E07: what was paid for is kept')
FROM billing_api.cancel_subscription(320, true, p_as_of => '2027-05-01 09:00Z') AS s;
SELECT is(
    (SELECT array_agg(billing_api.has_access(320, NULL, x.at) ORDER BY x.at)
     FROM unnest('{2027-05-01 09:00Z,2027-05-31 23:59:59Z,2027-06-01Z}'::timestamptz[]) AS x (at)),
    '{t,t,f}', 'E07: with access until its end'
);
SELECT billing_worker.renew_due(10, '2027-05-31 23:59:59Z');
SELECT is(
    billing_test.published(320),
    'SubscriptionCreated InvoiceOpened InvoicePaid SubscriptionActivated InvoiceOpened InvoicePaid SubscriptionRenewed '
    || 'SubscriptionCancelScheduled',
    'E07: and the world hears of no end before'
);
SELECT billing_worker.renew_due(10, '2027-06-01Z');
SELECT is(s.status, 'CANCELED', 'E07: then it ends') FROM billing_api.subscription AS s WHERE s.subscription_id = 320;

SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
