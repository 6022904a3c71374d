-- Three subscriptions of one customer in one batch share one balance.
BEGIN;
SELECT plan(16);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
CREATE TEMPORARY TABLE sold (name text, customer_id bigint, subscription_id bigint);
INSERT INTO sold (name, customer_id) VALUES ('rich', billing_test.customer('rich')), ('poor', billing_test.customer('poor'));
CREATE FUNCTION pg_temp.sell(p_name text, p_customer text, p_at timestamptz)
RETURNS void
LANGUAGE sql
AS $function$
    INSERT INTO sold
    SELECT p_name, c.customer_id, billing_test.paid_subscription(c.customer_id, p_resource_ref => p_name, p_as_of => p_at)
    FROM sold AS c WHERE c.name = p_customer;
$function$;
SELECT pg_temp.sell('first id', 'rich', '2027-04-01T00:00:00Z');
SELECT pg_temp.sell('second id', 'rich', '2027-04-01T00:00:00Z');
SELECT pg_temp.sell('due first', 'rich', '2027-03-31T00:00:00Z');
SELECT pg_temp.sell('poor''s', 'poor', '2027-04-01T00:00:00Z');
SELECT billing_api.grant_credit(c.customer_id, 5000, 'USD', 'sorry', 'k', '2027-04-15T00:00:00Z')
FROM sold AS c WHERE c.name = 'rich';
SELECT billing_api.grant_credit(c.customer_id, 9, 'EUR', 'sorry', 'k', '2027-04-15T00:00:00Z')
FROM sold AS c WHERE c.name = 'poor' AND c.subscription_id IS NULL;

SELECT is(billing_worker.renew_due(100, '2027-05-01T00:00:00Z'), 4, 'four subscriptions are renewed in one batch');
SELECT results_eq(
    $$SELECT x.name, i.total, i.credit_applied, i.amount_due, i.status
      FROM billing.invoice AS i INNER JOIN sold AS x USING (subscription_id)
      WHERE i.kind = 'RENEWAL' ORDER BY i.period_start, i.subscription_id$$,
    $$VALUES ('due first', 3000::bigint, 3000::bigint, 0::bigint, 'PAID'), ('first id', 3000, 2000, 1000, 'OPEN'),
      ('second id', 3000, 0, 3000, 'OPEN'), ('poor''s', 3000, 0, 3000, 'OPEN')$$,
    'in order of due date and id: the first is paid in full, the second in part, the third not at all; euros pay no dollars'
);
SELECT results_eq(
    $$SELECT e.entry_seq, e.kind, e.amount, e.balance_after FROM billing.credit_entry AS e
      WHERE e.currency = 'USD' ORDER BY e.entry_seq$$,
    $$VALUES (1::bigint, 'GRANTED', 5000::bigint, 5000::bigint), (2, 'DRAWN', -3000, 2000), (3, 'DRAWN', -2000, 0)$$,
    'the ledger has an entry per draw, each with the balance after it'
);
SELECT is_empty(
    $$SELECT b.* FROM billing.credit_balance AS b
      WHERE (b.balance, b.entry_seq) IS DISTINCT FROM (
          SELECT (sum(e.amount)::bigint, max(e.entry_seq)) FROM billing.credit_entry AS e
          WHERE e.customer_id = b.customer_id AND e.currency = b.currency
      )$$,
    'the balance is the sum of the ledger'
);
SELECT is(
    (SELECT b.balance FROM billing.credit_balance AS b WHERE b.currency = 'EUR'), 9::bigint, 'credit in another currency is untouched'
);
SELECT is(
    (SELECT i.next_attempt_at FROM billing.invoice AS i WHERE i.amount_due = 1000), '2027-05-01Z'::timestamptz,
    'what remains is due at once'
);
SELECT is(
    (SELECT billing_test.published(x.subscription_id) FROM sold AS x WHERE x.name = 'due first'),
    'SubscriptionCreated InvoiceOpened InvoicePaid SubscriptionActivated InvoiceOpened InvoicePaid SubscriptionRenewed',
    'the one that was paid by credit is told to be renewed'
);
SELECT is(
    (SELECT s.event_seq FROM billing.subscription AS s INNER JOIN sold AS x USING (subscription_id) WHERE x.name = 'due first'),
    7::bigint, 'under the next three numbers'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is(
    ARRAY(SELECT q.amount FROM billing_worker.start_attempts('sim', 10, 'test', '2027-05-01T00:00:00Z') AS q ORDER BY 1),
    '{1000,3000,3000}', 'gateways are asked for what remains only'
);

-- Credit that comes after the invoice was issued.
SELECT billing_api.grant_credit(c.customer_id, 3500, 'USD', 'more', 'k2', '2027-05-15T00:00:00Z') FROM sold AS c
WHERE c.name = 'rich' AND c.subscription_id IS NULL;
SELECT billing_worker.renew_due(100, '2027-06-01T00:00:00Z');
SELECT is(
    (SELECT array_agg(i.credit_applied ORDER BY i.period_start, i.subscription_id) FROM billing.invoice AS i
     INNER JOIN sold AS x USING (subscription_id) WHERE i.issued_at = '2027-06-01Z' AND x.customer_id = (
         SELECT c.customer_id FROM sold AS c WHERE c.name = 'rich' AND c.subscription_id IS NULL)),
    '{3000,500,0}', 'the next batch draws what is there by then, and no more'
);
SELECT is(
    (SELECT b.balance FROM billing.credit_balance AS b WHERE b.currency = 'USD'), 0::bigint, 'which leaves nothing'
);

-- One batch, one session after another: the second sees what the first has drawn.
SELECT billing_api.grant_credit(c.customer_id, 100, 'USD', 'last', 'k3', '2027-06-15T00:00:00Z') FROM sold AS c
WHERE c.name = 'rich' AND c.subscription_id IS NULL;
SELECT billing_worker.renew_due(1, '2027-07-01T00:00:00Z') FROM generate_series(1, 4);
SELECT is(
    (SELECT sum(i.credit_applied) FROM billing.invoice AS i WHERE i.issued_at = '2027-07-01Z'), 100::numeric,
    'in batches of one, too, a cent of credit is spent once'
);
SELECT is(
    (SELECT sum(-e.amount) FROM billing.credit_entry AS e WHERE e.kind = 'DRAWN'),
    (SELECT sum(i.credit_applied) FROM billing.invoice AS i), 'what was drawn stands on invoices'
);
SELECT throws_ok(
    $$INSERT INTO billing.credit_entry (customer_id, currency, entry_seq, kind, amount, balance_after, reason, actor, as_of)
      SELECT e.customer_id, e.currency, e.entry_seq, 'DRAWN', -1, 0, 'again', 'test', e.as_of FROM billing.credit_entry AS e
      WHERE e.kind = 'DRAWN' LIMIT 1$$,
    '23505', NULL, 'two draws from the same balance cannot be stored'
);

SELECT * FROM finish();
ROLLBACK;
