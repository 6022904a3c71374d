BEGIN;
SELECT plan(16);

SELECT billing_test.renewal_invoice();
CREATE TEMPORARY TABLE attempt AS SELECT billing_test.start('2027-05-01T00:00:00Z') AS id;
CREATE TEMPORARY TABLE answer AS
SELECT r.* FROM attempt AS a, billing_test.report(a.id, 'SUCCEEDED', '2027-05-01T00:00:02Z', p_payment_id => 'pay_1',
    p_amount => 3000, p_currency => 'USD') AS r;

SELECT row_eq(
    'SELECT r.outcome, r.verdict, r.attempt_status, r.invoice_status, r.subscription_status FROM answer AS r',
    ROW('SUCCEEDED'::text, 'APPLIED'::text, 'SUCCEEDED'::text, 'PAID'::text, 'ACTIVE'::text), 'the caller is told what became of it'
);
SELECT row_eq(
    $$SELECT a.status, a.gateway_payment_id, a.ended_at, a.lease_until, a.next_lookup_at FROM billing.payment_attempt AS a
      INNER JOIN attempt AS x ON x.id = a.attempt_id$$,
    ROW('SUCCEEDED'::text, 'pay_1'::text, '2027-05-01T00:00:02Z'::timestamptz, NULL::timestamptz, NULL::timestamptz),
    'the attempt has ended, with the payment at the gateway'
);
SELECT row_eq(
    $$SELECT i.status, i.amount_paid, i.amount_due, i.paid_at, i.next_attempt_at, i.failure_count FROM billing.invoice AS i
      WHERE i.kind = 'RENEWAL'$$,
    ROW('PAID'::text, 3000::bigint, 0::bigint, '2027-05-01T00:00:02Z'::timestamptz, NULL::timestamptz, 0), 'the invoice is PAID'
);
SELECT is(
    (SELECT billing_test.published(s.subscription_id) FROM billing.subscription AS s),
    'SubscriptionCreated InvoiceOpened InvoicePaid InvoiceOpened InvoicePaid SubscriptionRenewed',
    'the world hears that it was paid, and then that the subscription was renewed'
);
SELECT row_eq(
    $$SELECT p.source, p.claim_epoch, p.outcome, p.verdict, p.gateway_payment_id, p.amount, p.currency FROM billing.payment_report AS p
      INNER JOIN attempt AS x ON x.id = p.attempt_id$$,
    ROW('SEND'::text, 1, 'SUCCEEDED'::text, 'APPLIED'::text, 'pay_1'::text, 3000::bigint, 'USD'::text), 'and what was said is kept'
);

-- Said again, by a webhook, by a look-up, by a worker of long ago: once is enough.
SELECT is(
    (SELECT array_agg(r.verdict) FROM attempt AS a, unnest('{SEND,LOOKUP,WEBHOOK}'::text[]) AS s (source),
        billing_test.report(a.id, 'SUCCEEDED', '2027-05-01T00:10:00Z', p_source => s.source, p_payment_id => 'pay_1',
            p_epoch_off => -1) AS r),
    '{DUPLICATE,DUPLICATE,DUPLICATE}', 'repeated, it is a duplicate'
);
SELECT is((SELECT i.amount_paid FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'), 3000::bigint, 'and the invoice is paid once');
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o WHERE o.event_type = 'InvoicePaid' AND o.payload ->> 'kind' = 'RENEWAL'), 1::bigint,
    'and announced once'
);
SELECT is((SELECT count(*) FROM billing.payment_report AS p INNER JOIN attempt AS x ON x.id = p.attempt_id), 4::bigint,
    'though all was kept');
SELECT is((SELECT count(*) FROM billing.credit_entry), 0::bigint, 'no credit comes of it');

-- A success that names neither amount nor currency nor payment is of what was asked for.
SELECT billing_worker.renew_due(1, '2027-06-01T00:00:00Z');
SELECT row_eq(
    $$SELECT r.verdict, r.invoice_status FROM billing_test.start('2027-06-01T00:00:00Z') AS s (id),
      LATERAL billing_test.report(s.id, 'SUCCEEDED', '2027-06-01T00:00:01Z', p_epoch_off => -1) AS r$$,
    ROW('APPLIED'::text, 'PAID'::text), 'a success counts under an old epoch as well'
);
SELECT is((SELECT array_agg(i.amount_paid) FROM billing.invoice AS i), '{3000,3000,3000}', 'for the amount that was sent');

-- The same in one batch: two subscriptions, each twice, and an attempt that nobody knows.
SELECT billing_test.renewal_invoice('second');
SELECT billing_worker.renew_due(10, '2027-07-01T00:00:00Z') FROM generate_series(1, 3);
SELECT billing_test.start('2027-07-01T00:00:00Z');
CREATE TEMPORARY TABLE batch AS
SELECT s.* FROM billing_worker.settle_attempts(
    ARRAY(
        SELECT billing_test.result(a.attempt_id, 'SUCCEEDED')
        FROM billing.payment_attempt AS a, generate_series(1, 2) WHERE a.status = 'STARTED'
        UNION ALL
        SELECT ROW(64, 63, 1, 'SUCCEEDED', 'pay_x', 1, 'USD', NULL, NULL, NULL, 'SEND')::billing.charge_result
    ), '2027-07-01T00:00:01Z'
) AS s;
SELECT results_eq(
    'SELECT b.verdict, count(*)::integer FROM batch AS b GROUP BY 1 ORDER BY 1',
    $$VALUES ('APPLIED', 4), ('DUPLICATE', 4), ('REJECTED', 1)$$,
    'each result of a batch is answered: applied once, a duplicate once, and one about an unknown attempt is rejected'
);
SELECT is_empty(
    $$SELECT i.* FROM billing.invoice AS i WHERE i.status <> 'PAID' OR i.amount_paid <> 3000$$, 'every invoice is paid once'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
