BEGIN;
SELECT plan(25);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_ops.create_dunning_policy(
    'on', '{60 days}', 'FIRST_FAILURE', p_past_due_renewal => 'CONTINUE', p_suspend_resource => true, p_as_of => '2027-01-01T00:00:00Z'
);
CREATE TEMPORARY TABLE scene (name text, customer_id bigint, subscription_id bigint);
CREATE FUNCTION pg_temp.scene(p_name text, p_policy text DEFAULT 'standard')
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    v_invoice_id bigint := billing_test.renewal_invoice(p_name, p_policy);
BEGIN
    INSERT INTO scene SELECT p_name, i.customer_id, i.subscription_id FROM billing.invoice AS i WHERE i.invoice_id = v_invoice_id;
END;
$function$;
CREATE FUNCTION pg_temp.finish(p_name text, p_to text, p_reason text, p_ended_at timestamptz,
    p_as_of timestamptz DEFAULT '2027-05-20T00:00:00Z')
RETURNS integer
LANGUAGE sql
AS $function$
    SELECT billing.end_subscriptions(
        ARRAY(SELECT ROW(s.customer_id, s.subscription_id, p_to, p_reason, p_ended_at)::billing.ending FROM scene AS s
            WHERE s.name LIKE p_name),
        p_as_of
    );
$function$;
CREATE FUNCTION pg_temp.timeline(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(format('%s-%s', to_char(p.period_start, 'MMDD'), to_char(p.period_end, 'MMDD')), ' ' ORDER BY p.period_start)
    FROM billing.subscription_period AS p INNER JOIN scene AS s USING (subscription_id) WHERE s.name = p_name;
$function$;
CREATE FUNCTION pg_temp.invoices(p_name text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(format('%s %s', to_char(i.period_start, 'MMDD'), i.status), ', ' ORDER BY i.period_start)
    FROM billing.invoice AS i INNER JOIN scene AS s USING (subscription_id) WHERE s.name = p_name;
$function$;

SELECT is(billing.end_subscriptions('{}', '2027-05-20Z'), 0, 'nothing to end is nothing to do');

-- In the middle of a period, with one opened ahead.
SELECT pg_temp.scene('middle');
SELECT billing_worker.renew_due(1, '2027-06-01T00:00:00Z');
SELECT is(pg_temp.timeline('middle'), '0401-0501 0501-0601 0601-0701', 'a subscription with a period ahead');
SELECT is(pg_temp.finish('middle', 'CANCELED', 'requested', '2027-05-20T00:00:00Z'), 1, 'is ended');
SELECT is(pg_temp.timeline('middle'), '0401-0501 0501-0520', 'the period that runs is cut, the one ahead removed');
SELECT row_eq(
    $$SELECT s.status, s.ended_at, s.end_reason, s.current_period_start, s.current_period_end, s.next_renewal_at
      FROM billing.subscription AS s INNER JOIN scene AS x USING (subscription_id) WHERE x.name = 'middle'$$,
    ROW('CANCELED'::text, '2027-05-20Z'::timestamptz, 'requested'::text, '2027-05-01Z'::timestamptz, '2027-05-20Z'::timestamptz,
        NULL::timestamptz),
    'the row says what the timeline says'
);
SELECT is(pg_temp.invoices('middle'), '0401 PAID, 0501 VOID, 0601 VOID', 'open invoices are void, paid ones stay');

-- Exactly at the start of a period, and at the start of all.
SELECT pg_temp.scene('start');
SELECT pg_temp.finish('start', 'CANCELED', 'requested', '2027-05-01T00:00:00Z');
SELECT is(pg_temp.timeline('start'), '0401-0501', 'an end at the start of a period removes it, instead of storing one without length');
SELECT pg_temp.scene('very start');
SELECT pg_temp.finish('very start', 'CANCELED', 'requested', '2027-04-01T00:00:00Z');
SELECT is(pg_temp.timeline('very start'), NULL, 'an end at the very start leaves none');
SELECT is(
    (SELECT s.current_period_start FROM billing.subscription AS s INNER JOIN scene AS x USING (subscription_id)
        WHERE x.name = 'very start'), NULL,
    'nor in the row'
);

-- After dunning: what has begun is FAILED and keeps its credit, what lies ahead is VOID and gives it back.
SELECT pg_temp.scene('dunning', 'on');
SELECT billing_test.collect('DECLINED', 'do_not_honor', '2027-05-01T00:00:00Z');
SELECT billing_worker.renew_due(1, '2027-06-01T00:00:00Z');
SELECT billing_api.grant_credit(s.customer_id, 4000, 'USD', 'x', 'k', '2027-05-02T00:00:00Z') FROM scene AS s WHERE s.name = 'dunning';
UPDATE billing.invoice AS i SET credit_applied = 2000 FROM scene AS s WHERE s.subscription_id = i.subscription_id AND s.name = 'dunning'
    AND i.status = 'OPEN';
SELECT billing.add_credit(i.customer_id, 'USD', 'DRAWN', -2000, i.invoice_id, NULL, 'x', '2027-05-02Z') FROM billing.invoice AS i
INNER JOIN scene AS s USING (subscription_id) WHERE s.name = 'dunning' AND i.status = 'OPEN';
SELECT is(pg_temp.finish('dunning', 'CANCELED', 'payment_failed', '2027-05-20T00:00:00Z'), 1, 'dunning ends one with an invoice ahead');
SELECT is(pg_temp.invoices('dunning'), '0401 PAID, 0501 FAILED, 0601 VOID', 'FAILED where its period has begun, VOID where it has not');
SELECT results_eq(
    $$SELECT i.status, i.credit_applied, i.failed_at, i.voided_at, i.next_attempt_at, i.dunning_ends_at FROM billing.invoice AS i
      INNER JOIN scene AS s USING (subscription_id) WHERE s.name = 'dunning' AND i.kind = 'RENEWAL' ORDER BY i.period_start$$,
    $$VALUES ('FAILED', 2000::bigint, '2027-05-20Z'::timestamptz, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz),
      ('VOID', 0, NULL, '2027-05-20Z', NULL, NULL)$$,
    'a FAILED invoice keeps its credit, a VOID one does not'
);
SELECT is((SELECT b.balance FROM billing.credit_balance AS b), 2000::bigint, 'which is back with the customer');
SELECT is(
    (SELECT string_agg(e.kind || ' ' || e.amount, ', ' ORDER BY e.entry_seq) FROM billing.credit_entry AS e),
    'GRANTED 4000, DRAWN -2000, DRAWN -2000, RETURNED 2000', 'once'
);
SELECT isnt(
    (SELECT r.suspended_by_billing_at FROM billing.resource AS r INNER JOIN scene AS s USING (customer_id) WHERE s.name = 'dunning'), NULL,
    'the policy suspends the resource'
);
SELECT matches(
    (SELECT billing_test.published(s.subscription_id) FROM scene AS s WHERE s.name = 'dunning'),
    'InvoiceFailed InvoiceVoided SubscriptionCanceled ResourceSuspended$', 'each of these is told, invoices first'
);

-- Several at once, ended ones among them.
SELECT pg_temp.scene('many 1');
SELECT pg_temp.scene('many 2');
SELECT is(pg_temp.finish('many%', 'EXPIRED', 'term_end', '2027-05-20T00:00:00Z'), 2, 'two are ended in one call');
SELECT is(
    (SELECT array_agg(DISTINCT s.status) FROM billing.subscription AS s INNER JOIN scene AS x USING (subscription_id)
        WHERE x.name LIKE 'many%'), '{EXPIRED}',
    'both'
);
SELECT throws_ok($$SELECT pg_temp.finish('many 1', 'CANCELED', 'requested', '2027-05-20Z')$$, 'SB302', NULL,
    'what has ended, ends no more');
SELECT throws_ok(
    $$SELECT billing.end_subscriptions(ARRAY[ROW(1, 1, 'CANCELED', 'requested', '2027-05-20Z')::billing.ending], '2027-05-20Z')$$, 'SB901',
        NULL,
    'one that is not there is a broken invariant'
);
SELECT pg_temp.scene('wrong');
SELECT throws_ok($$SELECT pg_temp.finish('wrong', 'INCOMPLETE', 'requested', '2027-05-20Z')$$, 'SB303', NULL,
    'an end that is none is refused');
SELECT throws_ok($$SELECT pg_temp.finish('wrong', 'CANCELED', NULL, '2027-05-20Z')$$, '23514', NULL, 'an end says why');

-- Its numbers and its log.
SELECT is(
    (SELECT e.from_status || ' ' || e.to_status || ' ' || (e.detail ->> 'reason') || ' ' || (e.detail ->> 'endedAt')
     FROM billing.subscription_event AS e
     INNER JOIN scene AS s USING (subscription_id) WHERE s.name = 'middle' AND e.event_type = 'SubscriptionCanceled'),
    'ACTIVE CANCELED requested 2027-05-20T00:00:00Z', 'the log says from where to where, why and when'
);
SELECT is(
    (SELECT count(*) FROM billing.outbox_event AS o INNER JOIN billing.subscription_event AS e
     ON e.subscription_id = o.aggregate_id AND e.event_seq = o.aggregate_seq
     WHERE o.aggregate_type = 'subscription' AND e.event_type <> o.event_type), 0::bigint,
    'log and outbox carry the same numbers'
);
SELECT is_empty(
    $$SELECT h.* FROM billing_test.holes() AS h WHERE h.problem NOT LIKE '%is missing'$$, 'no number is repeated or invented'
);

SELECT * FROM finish();
ROLLBACK;
