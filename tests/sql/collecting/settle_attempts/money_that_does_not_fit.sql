-- More, less, another currency, another payment, too late: booked where it belongs, or laid before a person; never lost.
BEGIN;
SELECT plan(36);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
CREATE TEMPORARY TABLE scene (name text, subscription_id bigint, customer_id bigint, invoice_id bigint, attempt_id bigint);
CREATE FUNCTION pg_temp.scene(p_name text, p_policy text DEFAULT 'standard')
RETURNS bigint
LANGUAGE plpgsql
AS $function$
DECLARE
    v_invoice_id bigint := billing_test.renewal_invoice(p_name, p_policy);
    v_attempt_id bigint := billing_test.start('2027-05-01T00:00:00Z');
BEGIN
    INSERT INTO scene
    SELECT p_name, i.subscription_id, i.customer_id, i.invoice_id, v_attempt_id FROM billing.invoice AS i WHERE i.invoice_id = v_invoice_id;
    RETURN v_attempt_id;
END;
$function$;
CREATE FUNCTION pg_temp.invoice(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', i.status, 'paid', i.amount_paid, 'due', i.amount_due, 'next', to_char(i.next_attempt_at, 'MM-DD'))
    FROM billing.invoice AS i INNER JOIN scene AS s USING (invoice_id) WHERE s.name = p_name;
$function$;
CREATE FUNCTION pg_temp.credit(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(concat_ws(' ', e.kind, e.amount), ', ' ORDER BY e.entry_seq)
    FROM billing.credit_entry AS e INNER JOIN scene AS s USING (customer_id) WHERE s.name = p_name;
$function$;
CREATE FUNCTION pg_temp.cases(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(concat_ws(' ', c.kind, c.amount, c.currency), ', ' ORDER BY c.case_id)
    FROM billing.reconciliation_case AS c INNER JOIN scene AS s USING (attempt_id) WHERE s.name = p_name;
$function$;
CREATE FUNCTION pg_temp.unexpected(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(concat_ws(' ', o.payload ->> 'amount', o.payload ->> 'treatment'), ', ')
    FROM billing.outbox_event AS o INNER JOIN scene AS s ON s.subscription_id = o.aggregate_id
    WHERE s.name = p_name AND o.event_type = 'PaymentUnexpected';
$function$;

-- More than what was asked for.
SELECT pg_temp.scene('more');
SELECT billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:01:00Z', p_payment_id => 'm1', p_amount => 3500, p_currency => 'USD')
FROM scene AS s WHERE s.name = 'more';
SELECT is(pg_temp.invoice('more'), 'PAID paid 3000 due 0 next', 'more pays the invoice');
SELECT is(pg_temp.credit('more'), 'SURPLUS 500', 'the surplus is credit');
SELECT is(pg_temp.unexpected('more'), '500 CREDITED', 'and told');
SELECT is(pg_temp.cases('more'), NULL, 'nobody has to look at it');

-- Less.
SELECT pg_temp.scene('less');
SELECT billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:01:00Z', p_payment_id => 'l1', p_amount => 1000, p_currency => 'USD')
FROM scene AS s WHERE s.name = 'less';
SELECT is(pg_temp.invoice('less'), 'OPEN paid 1000 due 2000 next', 'less is recorded, the rest is due, and no attempt follows by itself');
SELECT is(pg_temp.cases('less'), 'AMOUNT_MISMATCH 1000 USD', 'a person has to look at it');
SELECT is(billing_test.start('2027-05-20T00:00:00Z'), NULL, 'nothing is attempted until then');
SELECT is(
    (SELECT s.status FROM billing.subscription AS s INNER JOIN scene AS x USING (subscription_id) WHERE x.name = 'less'), 'ACTIVE',
    'the subscription is not past due for it'
);

-- Another currency.
SELECT pg_temp.scene('euro');
SELECT is(
    (SELECT r.verdict FROM scene AS s, LATERAL billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:01:00Z',
        p_payment_id => 'e1', p_amount => 3000, p_currency => 'EUR') AS r WHERE s.name = 'euro'),
    'REJECTED', 'another currency is rejected'
);
SELECT is(pg_temp.invoice('euro'), 'OPEN paid 0 due 3000 next', 'no invoice moves, and nothing is sent any more');
SELECT is(pg_temp.cases('euro'), 'CURRENCY_MISMATCH 3000 EUR', 'a case has it');
SELECT is(
    (SELECT concat_ws(' ', a.status, a.lease_until, a.next_lookup_at) FROM billing.payment_attempt AS a
     INNER JOIN scene AS s USING (attempt_id) WHERE s.name = 'euro'),
    'STARTED', 'the attempt stays open, neither claimed nor looked up'
);

-- The payment of somebody else, and another payment than the one that is known.
SELECT pg_temp.scene('foreign');
SELECT is(
    (SELECT r.verdict FROM scene AS s, LATERAL billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:01:00Z',
        p_payment_id => 'm1') AS r WHERE s.name = 'foreign'),
    'REJECTED', 'a payment that belongs to another attempt is rejected'
);
SELECT is(pg_temp.cases('foreign'), 'BINDING_MISMATCH 3000 USD', 'and a case has it');
SELECT is(pg_temp.invoice('foreign'), 'OPEN paid 0 due 3000 next', 'no invoice moves');
SELECT pg_temp.scene('renamed');
SELECT billing_test.report(s.attempt_id, 'PROCESSING', '2027-05-01T00:01:00Z', p_payment_id => 'r1') FROM scene AS s
    WHERE s.name = 'renamed';
SELECT is(
    (SELECT array_agg(r.verdict ORDER BY o.no) FROM scene AS s,
        (VALUES (1, 'DECLINED', 'r2'), (2, 'SUCCEEDED', 'r2'), (3, 'SUCCEEDED', 'r1'))
        AS o (no, outcome, payment_id),
        LATERAL billing_test.report(s.attempt_id, o.outcome, '2027-05-01T00:02:00Z', 'do_not_honor', p_payment_id => o.payment_id) AS r
     WHERE s.name = 'renamed'),
    '{REJECTED,REJECTED,APPLIED}', 'a report about another payment than the known one is rejected, whatever it says; the right one counts'
);

-- Two attempts, one payment, one batch.
SELECT pg_temp.scene('twin a');
SELECT pg_temp.scene('twin b');
SELECT lives_ok(
    $$SELECT billing_worker.settle_attempts(
        ARRAY(SELECT billing_test.result(s.attempt_id, 'SUCCEEDED', p_payment_id => 'same') FROM scene AS s WHERE s.name LIKE 'twin%'),
        '2027-05-01T00:02:00Z')$$,
    'two results that name one payment do not hold up their batch'
);
SELECT is(
    (SELECT array_agg(pg_temp.invoice(s.name) ORDER BY s.name) FROM scene AS s WHERE s.name LIKE 'twin%'),
    '{PAID paid 3000 due 0 next,OPEN paid 0 due 3000 next}', 'one is paid with it'
);
SELECT is(pg_temp.cases('twin b'), 'BINDING_MISMATCH 3000 USD', 'the other goes to a person');

-- A success after a decline, while another try waits to be sent again.
SELECT pg_temp.scene('second thoughts');
SELECT billing_test.report(s.attempt_id, 'DECLINED', '2027-05-01T00:01:00Z', 'do_not_honor') FROM scene AS s
    WHERE s.name = 'second thoughts';
SELECT billing_test.report(billing_test.start('2027-05-02T02:00:00Z'), 'NOT_ATTEMPTED', '2027-05-02T02:00:00Z');
SELECT billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-02T02:01:00Z', p_source => 'WEBHOOK', p_payment_id => 's1')
FROM scene AS s WHERE s.name = 'second thoughts';
SELECT is(pg_temp.invoice('second thoughts'), 'PAID paid 3000 due 0 next', 'money that has moved counts after a decline');
SELECT is(
    (SELECT array_agg(a.status ORDER BY a.attempt_no) FROM billing.payment_attempt AS a INNER JOIN scene AS s USING (invoice_id)
     WHERE s.name = 'second thoughts'),
    '{SUCCEEDED,ABANDONED}', 'and the try that took its place, never executed, is given up'
);
SELECT is(
    (SELECT s.status FROM billing.subscription AS s INNER JOIN scene AS x USING (subscription_id)
     WHERE x.name = 'second thoughts'), 'ACTIVE',
    'the subscription has recovered'
);

-- Both tries succeed: the second one's money is credit.
SELECT pg_temp.scene('both');
SELECT billing_test.report(s.attempt_id, 'DECLINED', '2027-05-01T00:01:00Z', 'do_not_honor') FROM scene AS s WHERE s.name = 'both';
CREATE TEMPORARY TABLE second_try AS SELECT billing_test.start('2027-05-02T02:00:00Z') AS id;
SELECT billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-02T02:01:00Z', p_source => 'WEBHOOK', p_payment_id => 'b1')
FROM scene AS s WHERE s.name = 'both';
SELECT billing_test.report(t.id, 'SUCCEEDED', '2027-05-02T02:02:00Z', p_payment_id => 'b2') FROM second_try AS t;
SELECT is(pg_temp.invoice('both'), 'PAID paid 3000 due 0 next', 'an invoice that was paid twice is paid once');
SELECT is(pg_temp.credit('both'), 'LATE_PAYMENT 3000', 'the other payment is credit');
SELECT is(pg_temp.unexpected('both'), '3000 CREDITED', 'and told');

-- Late money for a VOID invoice: credit where something lives, a case where nothing does.
SELECT pg_temp.scene('void');
SELECT billing_api.cancel_subscription(s.subscription_id, p_as_of => '2027-05-01T00:00:30Z') FROM scene AS s WHERE s.name = 'void';
SELECT billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:01:00Z', p_payment_id => 'v1') FROM scene AS s WHERE s.name = 'void';
SELECT is(pg_temp.invoice('void'), 'VOID paid 0 due 3000 next', 'nothing is revived');
SELECT is(
    (SELECT concat_ws(' ', f.purpose, f.status, f.amount, f.currency, f.gateway_payment_id)
     FROM billing.refund AS f INNER JOIN scene AS s USING (invoice_id) WHERE s.name = 'void'),
    'LATE_PAYMENT REQUESTED 3000 USD v1', 'the money is to go back'
);
SELECT is(pg_temp.unexpected('void'), '3000 REFUNDED', 'and the world is told');
SELECT pg_temp.scene('void but back');
SELECT billing_api.cancel_subscription(s.subscription_id, p_as_of => '2027-05-01T00:00:30Z') FROM scene AS s WHERE s.name = 'void but back';
SELECT billing_test.subscription(s.customer_id, p_as_of => '2027-05-01T00:00:40Z') FROM scene AS s WHERE s.name = 'void but back';
SELECT billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-01T00:01:00Z', p_payment_id => 'vb1') FROM scene AS s
WHERE s.name = 'void but back';
SELECT is(pg_temp.credit('void but back'), 'LATE_PAYMENT 3000', 'where the resource has a live subscription, late money is its credit');
SELECT is(pg_temp.cases('void but back'), NULL, 'and nobody has to look');

-- Late money for a FAILED one.
SELECT billing_ops.create_dunning_policy('none', '{}', p_suspend_resource => true, p_as_of => '2027-01-01T00:00:00Z');
SELECT pg_temp.scene('failed', 'none');
SELECT billing_test.report(s.attempt_id, 'DECLINED', '2027-05-01T00:01:00Z', 'do_not_honor') FROM scene AS s WHERE s.name = 'failed';
SELECT is(pg_temp.invoice('failed'), 'FAILED paid 0 due 3000 next', 'without retries the first decline ends it');
SELECT billing_test.report(s.attempt_id, 'SUCCEEDED', '2027-05-03T00:00:00Z', p_source => 'WEBHOOK', p_payment_id => 'f1', p_amount => 3000)
FROM scene AS s WHERE s.name = 'failed';
SELECT is(pg_temp.invoice('failed'), 'PAID paid 3000 due 0 next', 'a FAILED invoice is paid late');
SELECT is(
    (SELECT s.status || ' ' || coalesce(r.suspended_by_billing_at::text, 'free') FROM billing.subscription AS s
     INNER JOIN scene AS x USING (subscription_id) INNER JOIN billing.resource AS r
     ON r.customer_id = s.customer_id AND r.resource_id = s.resource_id WHERE x.name = 'failed'),
    'CANCELED free', 'the subscription is not revived, but billing''s suspension is lifted'
);
SELECT matches(
    (SELECT billing_test.published(s.subscription_id) FROM scene AS s WHERE s.name = 'failed'),
    'InvoiceFailed SubscriptionCanceled ResourceSuspended InvoicePaid ResourceResumed$', 'and all of that is told'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
