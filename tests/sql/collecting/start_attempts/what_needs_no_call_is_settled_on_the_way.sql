-- F07, blocked methods, credit: invoices that no gateway has to be called for.
BEGIN;
SELECT plan(37);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_ops.create_dunning_policy('short', '{1 day,2 days}', 'FIRST_FAILURE', p_as_of => '2027-01-01T00:00:00Z');
CREATE TEMPORARY TABLE scene (name text, customer_id bigint, subscription_id bigint, invoice_id bigint);
CREATE FUNCTION pg_temp.scene(p_name text, p_policy text DEFAULT 'short')
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    v_invoice_id bigint := billing_test.renewal_invoice(p_name, p_policy);
BEGIN
    INSERT INTO scene
    SELECT p_name, i.customer_id, i.subscription_id, i.invoice_id FROM billing.invoice AS i WHERE i.invoice_id = v_invoice_id;
END;
$function$;
CREATE FUNCTION pg_temp.state(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(
        ' ', i.status, coalesce('due ' || to_char(i.next_attempt_at, 'MM-DD'), 'not due'), 'failed ' || i.failure_count,
        'attempts ' || (SELECT count(*) FROM billing.payment_attempt AS a WHERE a.invoice_id = i.invoice_id), s.status
    )
    FROM billing.invoice AS i
    INNER JOIN scene AS x USING (invoice_id)
    INNER JOIN billing.subscription AS s ON s.subscription_id = i.subscription_id
    WHERE x.name = p_name;
$function$;

-- F07: the only method was removed in April. (Nothing was owed then, so it could be.)
SELECT pg_temp.scene('no method');
UPDATE billing.payment_method AS m SET removed_at = '2027-04-15Z', is_default = false
FROM scene AS x WHERE x.customer_id = m.customer_id;
SELECT is(billing_test.start('2027-05-01T00:00:00Z'), NULL, 'F07: without a method nothing is sent');
SELECT is(pg_temp.state('no method'), 'OPEN due 05-02 failed 1 attempts 1 PAST_DUE',
    'F07: the invoice is declined, past due, and the ladder has begun');
SELECT row_eq(
    $$SELECT a.status, a.decline_code, a.decline_class, a.amount, a.gateway_account_id, a.payment_method_token, a.send_count
      FROM billing.payment_attempt AS a INNER JOIN scene AS x USING (invoice_id) WHERE x.name = 'no method'$$,
    ROW('DECLINED'::text, 'no_payment_method'::text, 'CUSTOMER'::text, 3000::bigint, NULL::integer, NULL::text, 0),
    'F07: by an attempt that went to no gateway'
);
SELECT is(
    (SELECT billing_test.published(x.subscription_id) FROM scene AS x),
    'SubscriptionCreated InvoiceOpened InvoicePaid InvoiceOpened InvoicePaymentFailed SubscriptionPastDue', 'F07: and told'
);
SELECT is(
    (SELECT o.payload ->> 'declineCode' FROM billing.outbox_event AS o WHERE o.event_type = 'InvoicePaymentFailed'), 'no_payment_method',
    'F07: with its reason'
);
SELECT billing_test.start('2027-05-01T12:00:00Z');
SELECT is(pg_temp.state('no method'), 'OPEN due 05-02 failed 1 attempts 1 PAST_DUE', 'F07: nothing more before the next rung');
SELECT billing_test.start('2027-05-02T00:00:00Z');
SELECT billing_test.start('2027-05-03T00:00:00Z');
SELECT is(pg_temp.state('no method'), 'FAILED not due failed 3 attempts 3 CANCELED', 'F07: each rung declines, the last one ends it');

-- F07: an invoice issued when there was no method has no account; any account's worker takes it up, also that of a new method.
SELECT billing_test.gateway('other');
SELECT pg_temp.scene('never had one', 'standard');
UPDATE billing.invoice AS i SET gateway_account_id = NULL FROM scene AS x WHERE x.invoice_id = i.invoice_id AND x.name = 'never had one';
SELECT is(billing_test.start('2027-05-01T00:00:00Z', 'other'), NULL, 'an invoice without an account is seen by every account');
SELECT is(
    (SELECT i.gateway_account_id FROM billing.invoice AS i INNER JOIN scene AS x USING (invoice_id) WHERE x.name = 'never had one'),
    (SELECT g.gateway_account_id FROM billing.gateway_account AS g WHERE g.code = 'sim'), 'and given to the account of its method'
);
SELECT isnt(billing_test.start('2027-05-01T00:00:00Z', 'sim'), NULL, 'which sends it');

-- A hard decline blocks the method; rungs pass untried at their time, so that the end stands.
SELECT pg_temp.scene('stolen');
SELECT billing_test.report(billing_test.start('2027-05-01T00:00:00Z'), 'DECLINED', '2027-05-01T00:00:00Z', 'stolen_card');
SELECT row_eq(
    $$SELECT m.blocked_at, m.blocked_code FROM billing.payment_method AS m INNER JOIN scene AS x USING (customer_id)
        WHERE x.name = 'stolen'$$,
    ROW('2027-05-01Z'::timestamptz, 'stolen_card'::text), 'a HARD decline blocks the method'
);
SELECT is(billing_test.start('2027-05-02T00:00:00Z'), NULL, 'at the next rung it is not tried');
SELECT is(pg_temp.state('stolen'), 'OPEN due 05-03 failed 2 attempts 1 PAST_DUE', 'but the rung is used');
SELECT matches(
    (SELECT billing_test.log_of(x.subscription_id) FROM scene AS x WHERE x.name = 'stolen'),
        'InvoicePaymentFailed SubscriptionPastDue RetryPassed$',
    'the log says so'
);
SELECT billing_test.start('2027-05-03T00:00:00Z');
SELECT is(pg_temp.state('stolen'), 'FAILED not due failed 3 attempts 1 CANCELED',
    'and the last one that passes ends it, on the day on which it would have ended');

-- A new method makes it due at once, for one attempt that uses no rung.
SELECT pg_temp.scene('new card');
SELECT billing_test.report(billing_test.start('2027-05-01T00:00:00Z'), 'DECLINED', '2027-05-01T00:00:00Z', 'expired_card');
SELECT billing_api.add_payment_method(x.customer_id, 'sim', 'tok_new', p_as_of => '2027-05-01T06:00:00Z') FROM scene AS x
    WHERE x.name = 'new card';
SELECT is(pg_temp.state('new card'), 'OPEN due 05-01 failed 1 attempts 1 PAST_DUE', 'a new method makes the invoice due at once');
SELECT billing_test.report(billing_test.start('2027-05-01T06:00:00Z'), 'DECLINED', '2027-05-01T06:00:00Z', 'insufficient_funds');
SELECT is(pg_temp.state('new card'), 'OPEN due 05-02 failed 1 attempts 2 PAST_DUE',
    'declined, it has used no rung, and the one that was planned stands');
SELECT is(
    (SELECT i.lane FROM billing.invoice AS i INNER JOIN scene AS x USING (invoice_id) WHERE x.name = 'new card'), 'BACKLOG',
    'which nobody is waiting for'
);
SELECT billing_test.report(billing_test.start('2027-05-02T00:00:00Z'), 'SUCCEEDED', '2027-05-02T00:00:00Z');
SELECT is(pg_temp.state('new card'), 'PAID not due failed 1 attempts 3 ACTIVE', 'the rung pays');

-- A checkout or a first invoice on a stolen card is not tried again by itself either.
SELECT billing_test.subscription(billing_test.customer('stolen at sign-up'), p_dunning_policy => 'short',
    p_as_of => '2027-05-10T00:00:00Z');
SELECT billing_test.report(billing_test.start('2027-05-10T00:00:00Z'), 'DECLINED', '2027-05-10T00:00:00Z', 'stolen_card');
SELECT is(billing_test.start('2027-05-11T00:00:00Z'), NULL,
    'the retry of a first invoice does not try a stolen card, although the first try was interactive');

-- Credit that came after the invoice was issued.
SELECT pg_temp.scene('credit', 'short');
SELECT billing_api.grant_credit(x.customer_id, 1000, 'USD', 'some', 'k1', '2027-05-01T00:00:00Z') FROM scene AS x WHERE x.name = 'credit';
SELECT is(billing_test.start('2027-05-01T00:00:00Z'), NULL, 'credit is drawn before a gateway is called');
SELECT row_eq(
    $$SELECT i.credit_applied, i.amount_due, i.status, i.next_attempt_at FROM billing.invoice AS i INNER JOIN scene AS x USING (invoice_id)
      WHERE x.name = 'credit'$$,
    ROW(1000::bigint, 2000::bigint, 'OPEN'::text, '2027-05-01Z'::timestamptz), 'the rest is due as before'
);
SELECT is(
    (SELECT q.amount FROM billing_worker.start_attempts('sim', 10, 'w', '2027-05-01T00:00:00Z') AS q), 2000::bigint,
        'and sent in the next round'
);
SELECT billing_api.grant_credit(x.customer_id, 5000, 'USD', 'plenty', 'k2', '2027-05-01T00:00:00Z') FROM scene AS x WHERE x.name = 'credit';
SELECT billing_test.report(a.attempt_id, 'NOT_ATTEMPTED', '2027-05-01T00:00:00Z') FROM billing.payment_attempt AS a
INNER JOIN scene AS x USING (invoice_id) WHERE x.name = 'credit';
SELECT billing_test.lapse_holds();
SELECT is(
    (SELECT q.amount FROM billing_worker.start_attempts('sim', 10, 'w', '2027-05-01T00:00:00Z') AS q), 2000::bigint,
    'while an attempt is open no credit is drawn: what was sent is sent again'
);
SELECT billing_test.report(a.attempt_id, 'DECLINED', '2027-05-01T00:00:00Z', 'do_not_honor') FROM billing.payment_attempt AS a
INNER JOIN scene AS x USING (invoice_id) WHERE x.name = 'credit';
SELECT is(billing_test.start('2027-05-02T00:00:00Z'), NULL, 'at the next rung credit covers it');
SELECT is(pg_temp.state('credit'), 'PAID not due failed 1 attempts 1 ACTIVE', 'it is PAID, and the subscription has recovered');
SELECT is((SELECT b.balance FROM billing.credit_balance AS b), 3000::bigint, 'with the rest of the credit left');
SELECT matches(
    (SELECT billing_test.published(x.subscription_id) FROM scene AS x WHERE x.name = 'credit'),
        'InvoicePaid SubscriptionRecovered SubscriptionRenewed$',
    'as it would with a payment'
);

-- Two invoices of one customer draw one after the other, in the order in which they were issued.
SELECT pg_temp.scene('two', 'short');
SELECT billing_test.subscription(x.customer_id, p_resource_ref => 'second', p_as_of => '2027-05-01T00:00:01Z') FROM scene AS x
    WHERE x.name = 'two';
SELECT billing_api.grant_credit(x.customer_id, 4000, 'USD', 'some', 'k1', '2027-05-01T00:00:02Z') FROM scene AS x WHERE x.name = 'two';
SELECT billing_test.start('2027-05-01T00:00:02Z');
SELECT is(
    (SELECT array_agg(i.credit_applied ORDER BY i.invoice_id) FROM billing.invoice AS i INNER JOIN scene AS x USING (customer_id)
     WHERE x.name = 'two' AND i.issued_at >= '2027-05-01Z'), '{3000,1000}', 'the older one first'
);
SELECT is(
    (SELECT sum(b.balance) FROM billing.credit_balance AS b INNER JOIN scene AS x USING (customer_id) WHERE x.name = 'two'), 0::numeric,
        'to the last cent'
);

-- Several ways at once for one subscription with several invoices: CONTINUE, three open, no method.
SELECT billing_ops.create_dunning_policy('on', '{30 days}', 'FIRST_FAILURE', p_past_due_renewal => 'CONTINUE',
    p_as_of => '2027-01-01T00:00:00Z');
SELECT pg_temp.scene('many', 'on');
UPDATE billing.payment_method AS m SET removed_at = '2027-04-15Z', is_default = false FROM scene AS x
WHERE x.customer_id = m.customer_id AND x.name = 'many';
SELECT billing_worker.renew_due(100, '2027-07-01T00:00:00Z') FROM generate_series(1, 3);
SELECT billing_test.start('2027-07-01T00:00:00Z');
SELECT is(
    (SELECT array_agg(i.failure_count ORDER BY i.period_start) FROM billing.invoice AS i INNER JOIN scene AS x USING (subscription_id)
     WHERE x.name = 'many' AND i.kind = 'RENEWAL'), '{1,1,1}',
         'each of three open invoices of one subscription takes its own step in one batch'
);
SELECT is(
    (SELECT count(*) FROM billing.subscription_event AS e INNER JOIN scene AS x USING (subscription_id)
     WHERE x.name = 'many' AND e.event_type = 'SubscriptionPastDue'), 1::bigint, 'the subscription becomes past due once'
);
SELECT billing_test.start('2027-07-31T00:00:00Z');
SELECT is(
    (SELECT array_agg(DISTINCT i.status) FROM billing.invoice AS i INNER JOIN scene AS x USING (subscription_id)
     WHERE x.name = 'many' AND i.kind = 'RENEWAL'), '{FAILED}', 'and when all three ladders end in one batch, it ends once'
);
SELECT is(
    (SELECT count(*) FROM billing.subscription_event AS e INNER JOIN scene AS x USING (subscription_id)
     WHERE x.name = 'many' AND e.event_type = 'SubscriptionCanceled'), 1::bigint, 'with one event'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty(
    $$SELECT b.* FROM billing.credit_balance AS b WHERE b.balance <> (
        SELECT sum(e.amount) FROM billing.credit_entry AS e WHERE e.customer_id = b.customer_id AND e.currency = b.currency)$$,
    'every balance is the sum of its ledger'
);

SELECT * FROM finish();
ROLLBACK;
