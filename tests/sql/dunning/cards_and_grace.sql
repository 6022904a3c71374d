-- F06, F09, F12 by their own figures: a card that is declined for good, the edges of grace, the card that was chosen.
BEGIN;
SELECT plan(27);
CREATE FUNCTION pg_temp.sweep(p_as_of timestamptz)
RETURNS integer
LANGUAGE sql
AS $function$
    -- What workers do at an instant; every charge would succeed. Returns how many were made.
    SELECT c.made
    FROM billing_test.collect(p_as_of => p_as_of) AS c (made), billing_worker.end_dunning(100, p_as_of) AS d,
        billing_worker.renew_due(100, p_as_of) AS r;
$function$;
CREATE FUNCTION pg_temp.attempts(p_invoice_id bigint)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(format('%s %s %s', billing_test.shown(a.started_at), a.status, a.decline_code), ', ' ORDER BY a.attempt_no)
    FROM billing.payment_attempt AS a
    WHERE a.invoice_id = p_invoice_id;
$function$;

-- F06: stolen on 1 May; on day 5 a new card.
CREATE TEMPORARY TABLE debt AS
SELECT x.name, billing_test.renewal_invoice(x.name, 'store_grace') AS invoice_id, NULL::bigint AS subscription_id
FROM (VALUES ('new card'), ('no new card')) AS x (name);
UPDATE debt AS d SET subscription_id = i.subscription_id FROM billing.invoice AS i WHERE i.invoice_id = d.invoice_id;
CREATE FUNCTION pg_temp.debt(p_name text) RETURNS bigint LANGUAGE sql AS 'SELECT d.invoice_id FROM debt AS d WHERE d.name = $1';
CREATE FUNCTION pg_temp.sold(p_name text) RETURNS bigint LANGUAGE sql AS 'SELECT d.subscription_id FROM debt AS d WHERE d.name = $1';
SELECT is(billing_test.collect('DECLINED', 'stolen_card', '2027-05-01Z'), 2, 'F06: a stolen card, twice');
SELECT is(
    (SELECT sum(pg_temp.sweep(x.at)) FROM generate_series('2027-05-01 12:00Z'::timestamptz, '2027-05-05 12:00Z', '12 hours') AS x (at)),
    0::bigint, 'F06: on none of the rungs up to day 5 is it tried'
);
SELECT is(
    (SELECT string_agg(s.status, ' ') FROM billing.subscription AS s), 'PAST_DUE PAST_DUE', 'F06: both are past due'
);
SELECT lives_ok(
    $$SELECT billing_api.add_payment_method(s.customer_id, 'sim', 'tok_new', p_as_of => '2027-05-06Z')
      FROM billing.subscription AS s WHERE s.subscription_id = pg_temp.sold('new card')$$, 'F06: on day 5 one of them has a new card'
);
SELECT is(pg_temp.sweep('2027-05-06Z'), 1, 'F06: which is tried at once, once');
SELECT is(
    pg_temp.attempts(pg_temp.debt('new card')), '2027-05-01 DECLINED stolen_card, 2027-05-06 SUCCEEDED ', 'F06: two attempts in all'
);
SELECT is(s.status, 'ACTIVE', 'F06: and it has recovered')
FROM billing.subscription AS s WHERE s.subscription_id = pg_temp.sold('new card');
SELECT is(
    (SELECT sum(pg_temp.sweep(x.at)) FROM generate_series('2027-05-06 12:00Z'::timestamptz, '2027-05-15Z', '12 hours') AS x (at)),
    0::bigint, 'F06: without a new card nothing is tried in fourteen days'
);
SELECT is(
    pg_temp.attempts(pg_temp.debt('no new card')), '2027-05-01 DECLINED stolen_card', 'F06: of which there is one attempt'
);
SELECT results_eq(
    $$SELECT s.status, s.end_reason, s.ended_at FROM billing_api.subscription AS s WHERE s.subscription_id = pg_temp.sold('no new card')$$,
    $$VALUES ('EXPIRED', 'payment_failed', '2027-05-08Z'::timestamptz)$$, 'F06: the end stands: retries spent on day 5, grace over on day 7'
);

-- F09: failed at midnight on 1 May, grace of seven days.
INSERT INTO debt SELECT 'f09', billing_test.renewal_invoice('f09', 'store_grace');
UPDATE debt AS d SET subscription_id = i.subscription_id FROM billing.invoice AS i WHERE i.invoice_id = d.invoice_id;
SELECT billing_test.collect('DECLINED', 'insufficient_funds', x.at)
FROM unnest('{2027-05-01Z,2027-05-02Z,2027-05-04Z,2027-05-06Z}'::timestamptz[]) AS x (at);
SELECT is(
    (SELECT i.failure_count || ' ' || coalesce(i.next_attempt_at::text, 'none') FROM billing.invoice AS i
     WHERE i.invoice_id = pg_temp.debt('f09')),
    '4 none', 'F09: retries are spent on 6 May'
);
SELECT is(billing_worker.end_dunning(10, '2027-05-07 23:59:59Z'), 0, 'F09: in the last second of grace nothing ends');
SELECT is(
    billing_api.has_access(s.customer_id, NULL, '2027-05-07 23:59:59Z'), true, 'F09: there is access'
) FROM billing.subscription AS s WHERE s.subscription_id = pg_temp.sold('f09');
SELECT is(
    billing_api.has_access(s.customer_id, NULL, '2027-05-08Z'), false, 'F09: a second later there is none'
) FROM billing.subscription AS s WHERE s.subscription_id = pg_temp.sold('f09');
SELECT is(s.status, 'PAST_DUE', 'F09: the status is PAST_DUE at both')
FROM billing_api.subscription AS s WHERE s.subscription_id = pg_temp.sold('f09');
SELECT is(
    billing_test.published(pg_temp.sold('f09')),
    'SubscriptionCreated InvoiceOpened InvoicePaid InvoiceOpened InvoicePaymentFailed SubscriptionPastDue '
    || 'InvoicePaymentFailed InvoicePaymentFailed InvoicePaymentFailed',
    'F09: past due is told once, and no end before it comes'
);
SELECT is(
    (SELECT o.occurred_at FROM billing.outbox_event AS o
     WHERE o.event_type = 'SubscriptionPastDue' AND o.aggregate_id = pg_temp.sold('f09')),
    '2027-05-01Z'::timestamptz, 'F09: on 1 May'
);
SELECT is(billing_worker.end_dunning(10, '2027-05-08Z'), 1, 'F09: with grace over it ends');
SELECT is(
    (SELECT s.status || ' ' || coalesce(s.access_until::text, 'no grace') FROM billing.subscription AS s
     WHERE s.subscription_id = pg_temp.sold('f09')),
    'EXPIRED no grace', 'F09: as its policy says'
);

-- F10: whatever a policy says, nothing ends while a retry is still planned.
SELECT is_empty(
    $$SELECT i.invoice_id FROM billing.invoice AS i INNER JOIN billing.subscription AS s USING (customer_id, subscription_id)
      WHERE s.ended_at IS NOT NULL AND (i.next_attempt_at IS NOT NULL OR i.dunning_ends_at IS NOT NULL)$$,
    'F10: what has ended has no retry planned'
);

-- F12: card A is the default, the subscription is set to B; C is somebody else's.
INSERT INTO debt SELECT 'f12', billing_test.renewal_invoice('f12', p_token => 'tok_a');
UPDATE debt AS d SET subscription_id = i.subscription_id FROM billing.invoice AS i WHERE i.invoice_id = d.invoice_id;
SELECT billing_test.customer('other', p_token => 'tok_c');
CREATE TEMPORARY TABLE card AS
SELECT s.customer_id, s.subscription_id,
    (SELECT m.payment_method_id FROM billing_api.add_payment_method(
        s.customer_id, 'sim', 'tok_b', p_make_default => false, p_as_of => '2027-05-01Z'
    ) AS m) AS b,
    (SELECT m.payment_method_id FROM billing.payment_method AS m WHERE m.token = 'tok_c') AS c
FROM billing.subscription AS s WHERE s.subscription_id = pg_temp.sold('f12');
SELECT lives_ok(
    'SELECT billing_api.set_subscription_payment_method(c.subscription_id, c.b, p_as_of => ''2027-05-01Z'') FROM card AS c',
    'F12: the customer chooses B'
);
SELECT is(
    (SELECT string_agg(q.payment_method_token, ' ') FROM billing_worker.start_attempts('sim', 10, 'w', '2027-05-01Z') AS q),
    'tok_b', 'F12: the renewal is charged on B, not on the default'
);
SELECT throws_ok(
    'SELECT billing_api.set_subscription_payment_method(c.subscription_id, c.c) FROM card AS c',
    'SB205', NULL, 'F12: the card of another customer is refused'
);
SELECT throws_ok(
    'UPDATE billing.subscription AS s SET payment_method_id = c.c, version = s.version + 1
     FROM card AS c WHERE s.subscription_id = c.subscription_id',
    '23503', NULL, 'F12: by the database itself too'
);

SELECT is_empty($$SELECT o.event_type FROM billing.outbox_event AS o WHERE o.payload ? 'row'$$, 'what is for the log alone stays there');
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing or repeated');
SELECT * FROM finish();
ROLLBACK;
