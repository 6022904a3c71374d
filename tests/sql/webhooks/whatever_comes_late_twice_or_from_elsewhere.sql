-- G01, G02, G04, G05, G09, G11 by their own figures.
BEGIN;
SELECT plan(26);
SELECT billing_test.clock('2027-05-31Z');
SELECT billing_test.gateway('other');
CREATE TEMPORARY TABLE scene (name text, customer_id bigint, subscription_id bigint, invoice_id bigint);
CREATE FUNCTION pg_temp.scene(p_name text)
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    v_invoice_id bigint := billing_test.renewal_invoice(p_name);
BEGIN
    INSERT INTO scene
    SELECT p_name, i.customer_id, i.subscription_id, i.invoice_id FROM billing.invoice AS i WHERE i.invoice_id = v_invoice_id;
    PERFORM billing_test.start('2027-05-01Z');
END;
$function$;
CREATE FUNCTION pg_temp.hook(
    p_event_id text, p_name text, p_outcome text, p_payment_id text, p_amount bigint DEFAULT 3000, p_account text DEFAULT 'sim',
    p_try integer DEFAULT 1
)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT billing_worker.receive_webhook(p_account, p_event_id, 'charge.' || lower(p_outcome), jsonb_strip_nulls(jsonb_build_object(
        'outcome', p_outcome, 'paymentId', p_payment_id, 'amount', p_amount, 'currency', 'USD', 'customerId', 64,
        'code', CASE p_outcome WHEN 'DECLINED' THEN 'insufficient_funds' END,
        'reference', (SELECT a.idempotency_key FROM billing.payment_attempt AS a INNER JOIN scene AS s USING (invoice_id)
                      WHERE s.name = p_name AND a.attempt_no = p_try)
    )), '2027-05-02 12:00Z');
$function$;
CREATE FUNCTION pg_temp.became(p_event_id text)
RETURNS text
LANGUAGE sql
AS $function$
    UPDATE billing.webhook_event SET next_try_at = clock_timestamp() WHERE event_id = p_event_id;
    SELECT billing_worker.process_webhooks(50, '2027-05-02 12:00Z');
    SELECT w.status FROM billing.webhook_event AS w WHERE w.event_id = p_event_id;
$function$;
CREATE FUNCTION pg_temp.state(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', i.status, i.amount_paid, 'failed', i.failure_count, 'due', to_char(i.next_attempt_at, 'MM-DD'), s.status,
        to_char(s.current_period_end, 'MM-DD'))
    FROM billing.invoice AS i INNER JOIN scene AS x USING (invoice_id)
    INNER JOIN billing.subscription AS s ON s.subscription_id = i.subscription_id WHERE x.name = p_name;
$function$;

-- G01, G02: 8000 came for 3000.
SELECT pg_temp.scene('more');
SELECT is(pg_temp.hook('m1', 'more', 'SUCCEEDED', 'p1', 8000) || ' ' || pg_temp.hook('m1', 'more', 'SUCCEEDED', 'p1', 8000),
    'STORED DUPLICATE', 'G01: delivered twice, it is stored once');
SELECT is(pg_temp.became('m1'), 'APPLIED', 'G01: and applied');
SELECT is(pg_temp.hook('m1', 'more', 'SUCCEEDED', 'p1', 8000), 'DUPLICATE', 'G01: afterwards it is known too');
SELECT pg_temp.hook('m2', 'more', 'SUCCEEDED', 'p1', 8000), pg_temp.hook('m1', 'more', 'SUCCEEDED', 'p1', 8000, 'other');
SELECT is(pg_temp.became('m2'), 'DUPLICATE', 'G02: so is the payment under another event');
SELECT is(
    (SELECT string_agg(g.code || ' ' || w.event_id || ' ' || w.status, ', ' ORDER BY w.webhook_event_id)
     FROM billing.webhook_event AS w INNER JOIN billing.gateway_account AS g USING (gateway_account_id)),
    'sim m1 APPLIED, sim m2 DUPLICATE, other m1 REJECTED', 'G02: all are kept, also the one that came to another endpoint'
);
SELECT is(
    (SELECT string_agg(e.kind || ' ' || e.amount || ' ' || e.balance_after, ', ') FROM billing.credit_entry AS e), 'SURPLUS 5000 5000',
    'G01: 5000 of credit, in one entry'
);
SELECT is(pg_temp.state('more'), 'PAID 3000 failed 0 due ACTIVE 06-01', 'G01: and one payment of 3000');
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o INNER JOIN scene AS s ON s.subscription_id = o.aggregate_id
     WHERE o.event_type = 'InvoicePaid' AND o.payload ->> 'kind' = 'RENEWAL'), 1::bigint, 'G01: told once'
);

-- G04: the first try failed, the second was paid; then the first failure comes, and one of the second.
SELECT pg_temp.scene('late');
SELECT billing_test.report(a.attempt_id, 'DECLINED', '2027-05-01Z', 'insufficient_funds') FROM billing.payment_attempt AS a
WHERE a.status = 'STARTED';
SELECT billing_test.start('2027-05-02 03:00Z');
SELECT billing_test.report(a.attempt_id, 'SUCCEEDED', '2027-05-02 03:00Z', p_payment_id => 'p3') FROM billing.payment_attempt AS a
WHERE a.status = 'STARTED';
CREATE TEMPORARY TABLE told AS
SELECT billing_test.published(s.subscription_id) AS before FROM scene AS s WHERE s.name = 'late';
SELECT matches((SELECT t.before FROM told AS t), 'SubscriptionPastDue InvoicePaid SubscriptionRecovered', 'G04: declined, then paid');
SELECT pg_temp.hook('l1', 'late', 'DECLINED', 'p2'), pg_temp.hook('l2', 'late', 'DECLINED', 'p3', p_try => 2);
SELECT is(pg_temp.became('l1') || ' ' || pg_temp.became('l2'), 'DUPLICATE IGNORED', 'G04: then the failures arrive');
SELECT is(pg_temp.state('late'), 'PAID 3000 failed 1 due ACTIVE 06-01', 'G04: which takes nothing back, and plans nothing');
SELECT is(
    (SELECT string_agg(a.attempt_no || ' ' || a.status, ', ' ORDER BY a.attempt_no) FROM billing.payment_attempt AS a
     INNER JOIN scene AS s USING (invoice_id) WHERE s.name = 'late'),
    '1 DECLINED, 2 SUCCEEDED', 'G04: each try stays what it was'
);
SELECT is(
    (SELECT billing_test.published(s.subscription_id) FROM scene AS s WHERE s.name = 'late'), (SELECT t.before FROM told AS t),
    'G04: and nothing is told'
);

-- G05: ended on 2 May; what comes afterwards, under new ids, revives nothing.
SELECT billing_api.cancel_subscription(s.subscription_id, p_as_of => '2027-05-02 11:00Z') FROM scene AS s WHERE s.name = 'late';
SELECT pg_temp.hook('l3', 'late', 'SUCCEEDED', 'p3', p_try => 2), pg_temp.hook('l4', 'late', 'PROCESSING', 'p3', p_try => 2);
SELECT is(pg_temp.became('l3') || ' ' || pg_temp.became('l4'), 'DUPLICATE IGNORED', 'G05: news of what has ended');
SELECT matches(pg_temp.state('late'), 'CANCELED', 'G05: revives nothing');
SELECT is((SELECT billing_api.has_access(s.customer_id, p_as_of => '2027-05-02 12:00Z') FROM scene AS s WHERE s.name = 'late'), false,
    'G05: and gives no access');

-- G09, G11: an invoice of the same customer and amount is open all the time.
SELECT pg_temp.scene('open');
CREATE TEMPORARY TABLE before AS SELECT pg_temp.state('open') AS is_so;
SELECT is((SELECT b.is_so FROM before AS b), 'OPEN 0 failed 0 due ACTIVE 06-01', 'G09: one of 3000 is open');
SELECT pg_temp.hook('s1', 'nobody', 'SUCCEEDED', 'p9');
SELECT is(pg_temp.became('s1'), 'UNMATCHED', 'G09: a payment of 3000 that we do not know');
SELECT is(pg_temp.state('open'), (SELECT b.is_so FROM before AS b), 'G09: pays nothing, and moves no period');
UPDATE billing.webhook_event SET received_wall_at = clock_timestamp() - interval '61 minutes' WHERE event_id = 's1';
SELECT is(pg_temp.became('s1'), 'CASE', 'G09: after an hour a person has it');
SELECT pg_temp.hook('t1', 'open', 'SUCCEEDED', 'p4', p_account => 'other');
SELECT is(pg_temp.became('t1'), 'REJECTED', 'G11: at the endpoint of another account our reference is rejected');
SELECT pg_temp.hook('t2', 'nobody', 'SUCCEEDED', 'p3', p_account => 'other');
SELECT is(pg_temp.became('t2'), 'UNMATCHED', 'G11: and a payment id of this account is none of that one');
SELECT is(pg_temp.state('open'), (SELECT b.is_so FROM before AS b), 'G11: nothing has moved');
SELECT is_empty(
    $$SELECT w.event_id FROM billing.webhook_event AS w WHERE w.payload ? 'customerId'$$,
    'G11: a customer that the payload names is not even kept'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
