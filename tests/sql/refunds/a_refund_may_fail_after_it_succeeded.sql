-- A bank may send money back days later. Reports of both ends come in any order, so that the gateway is asked which holds.
BEGIN;
SELECT plan(51);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64);
CREATE FUNCTION pg_temp.tell(p_event_id text, p_refund_id bigint, p_outcome text)
RETURNS void
LANGUAGE sql
AS $function$
    SELECT billing_worker.receive_webhook('sim', p_event_id, 'refund.updated', jsonb_strip_nulls(jsonb_build_object(
        'refundId', 'ref_' || p_refund_id, 'reference', f.idempotency_key, 'outcome', p_outcome, 'amount', f.amount, 'currency', 'USD',
        'code', CASE p_outcome WHEN 'DECLINED' THEN 'expired_or_canceled_card' END
    )))
    FROM billing.refund AS f WHERE f.refund_id = p_refund_id;
$function$;
CREATE FUNCTION pg_temp.hook(p_event_id text, p_refund_id bigint, p_outcome text)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT pg_temp.tell(p_event_id, p_refund_id, p_outcome);
    SELECT billing_worker.process_webhooks(50);
    SELECT w.status FROM billing.webhook_event AS w WHERE w.event_id = p_event_id;
$function$;
CREATE FUNCTION pg_temp.sent(p_amount bigint)
RETURNS bigint
LANGUAGE sql
AS $function$
    SELECT billing_api.refund_invoice(64, p_amount, 'refund of ' || p_amount);
    SELECT q.refund_id FROM billing_worker.start_refunds('sim', 10, 'w') AS q;
$function$;
CREATE FUNCTION pg_temp.state(p_refund_id bigint)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT concat_ws(' ', f.status, f.failure_code, CASE WHEN f.next_lookup_at <= '2027-05-01Z' THEN 'asked' END)
    FROM billing.refund AS f WHERE f.refund_id = p_refund_id;
$function$;
CREATE FUNCTION pg_temp.ask()
RETURNS text
LANGUAGE sql
RETURN (SELECT string_agg(q.refund_id || ' ' || q.gateway_refund_id, ', ') FROM billing_worker.refunds_to_look_up('sim', 10) AS q);
CREATE FUNCTION pg_temp.found(p_refund_id bigint, p_outcome text, p_epoch_off integer DEFAULT 0)
RETURNS text
LANGUAGE sql
RETURN (
    SELECT s.verdict || ' ' || s.refund_status
    FROM billing_test.settle_refund(
        p_refund_id, p_outcome, p_gateway_refund_id => 'ref_' || p_refund_id, p_source => 'LOOKUP', p_epoch_off => p_epoch_off,
        p_code => CASE p_outcome WHEN 'DECLINED' THEN 'expired_or_canceled_card' END
    ) AS s
);
CREATE FUNCTION pg_temp.gone()
RETURNS bigint
LANGUAGE sql
RETURN (SELECT i.amount_refunded FROM billing.invoice AS i WHERE i.invoice_id = 64);

-- In order: it succeeded, and then it failed; each told twice.
SELECT pg_temp.sent(98);
SELECT is(pg_temp.hook('a1', 64, 'SUCCEEDED'), 'APPLIED', 'the money went');
SELECT is(pg_temp.gone(), 98::bigint, 'the invoice knows');
SELECT is(pg_temp.hook('a2', 64, 'DECLINED'), 'LOOKUP', 'that it failed is a reason to ask');
SELECT is(pg_temp.state(64), 'SUCCEEDED asked', 'and nothing else yet');
SELECT is(pg_temp.ask(), '64 ref_64', 'it is asked about by its id');
SELECT is(pg_temp.ask(), NULL, 'once');
SELECT is(pg_temp.found(64, 'UNKNOWN'), 'DUPLICATE SUCCEEDED', 'a look-up that errs changes nothing');
SELECT is(
    (SELECT f.next_lookup_at > '2027-05-01Z' AND f.lease_until IS NULL FROM billing.refund AS f), true, 'and is made again'
);
SELECT is(pg_temp.hook('a3', 64, 'DECLINED'), 'LOOKUP', 'told again');
SELECT is(pg_temp.ask(), '64 ref_64', 'it is asked about again');
SELECT is(pg_temp.found(64, 'DECLINED', -1), 'STALE SUCCEEDED', 'an older look-up has nothing to say');
SELECT is(pg_temp.found(64, 'DECLINED'), 'APPLIED FAILED', 'the gateway says that it failed');
SELECT is(pg_temp.state(64), 'FAILED expired_or_canceled_card', 'why stands there, and nobody asks any more');
SELECT is(pg_temp.gone(), 0::bigint, 'the money is ours again');
SELECT is(
    (SELECT concat_ws(' ', c.kind, c.amount, c.refund_id, c.detail ->> 'code') FROM billing_ops.open_cases AS c),
    'REFUND_FAILED 98 64 expired_or_canceled_card', 'a person has to return it in another way'
);
SELECT is(billing_test.published(64) LIKE '%RefundIssued RefundFailed', true, 'the world is told both');
SELECT is(pg_temp.hook('a4', 64, 'DECLINED'), 'DUPLICATE', 'the failure told once more is nothing new');
SELECT is(pg_temp.hook('a5', 64, 'SUCCEEDED'), 'LOOKUP', 'the success, delivered late, is a reason to ask');
SELECT is(pg_temp.state(64) || ' ' || pg_temp.gone(), 'FAILED expired_or_canceled_card asked 0', 'and nothing else');
SELECT pg_temp.ask();
SELECT is(pg_temp.hook('a6', 64, 'SUCCEEDED'), 'LOOKUP', 'told again while that is under way');
SELECT is(pg_temp.found(64, 'SUCCEEDED', -1), 'STALE FAILED', 'what was asked before that says nothing of now');
SELECT pg_temp.ask();
SELECT is(pg_temp.found(64, 'DECLINED'), 'DUPLICATE FAILED', 'the gateway stays with it');
SELECT is(pg_temp.state(64), 'FAILED expired_or_canceled_card', 'and that is the end');
SELECT is((SELECT count(*) FROM billing_ops.open_cases), 1::bigint, 'one case');

-- Swapped: the failure comes first.
SELECT is((SELECT q.refund_id FROM billing_api.refund_invoice(64, 3000, 'all of it') AS q), 128::bigint, 'all may be refunded anew');
SELECT billing_worker.start_refunds('sim', 10, 'w');
SELECT is(pg_temp.hook('b1', 128, 'DECLINED'), 'APPLIED', 'it failed');
SELECT is(
    (SELECT s.verdict FROM billing_test.settle_refund(128, 'SUCCEEDED') AS s), 'STALE', 'the answer to the send comes after'
);
SELECT is(pg_temp.ask(), '128 ref_128', 'it is asked about');
SELECT is(pg_temp.found(128, 'DECLINED'), 'DUPLICATE FAILED', 'the gateway stays with the failure');
SELECT is(pg_temp.gone(), 0::bigint, 'nothing went');
SELECT is(billing_test.published(64) LIKE '%RefundIssued RefundFailed', true, 'the world hears nothing of what it was never told');

-- Both at once.
SELECT pg_temp.sent(97);
SELECT pg_temp.tell('c1', 192, 'DECLINED');
SELECT is(pg_temp.hook('c2', 192, 'SUCCEEDED'), 'APPLIED', 'in one batch the success goes first');
SELECT is(
    (SELECT w.status FROM billing.webhook_event AS w WHERE w.event_id = 'c1') || ' ' || pg_temp.state(192), 'LOOKUP SUCCEEDED asked',
    'the failure is not lost'
);
SELECT pg_temp.ask();
SELECT is(pg_temp.found(192, 'SUCCEEDED'), 'DUPLICATE SUCCEEDED', 'the gateway may stay with the success');
SELECT is(pg_temp.state(192) || ' ' || pg_temp.gone(), 'SUCCEEDED 97', 'and that is the end');

-- No webhook came, but the settlement report does not know of it.
INSERT INTO billing.reconciliation_case (kind, customer_id, invoice_id, refund_id, opened_at)
VALUES ('MISSING_AT_GATEWAY', 64, 64, 192, '2027-05-01Z');
SELECT billing_ops.resolve_case(c.case_id, 'ask them') FROM billing_ops.open_cases AS c WHERE c.kind = 'MISSING_AT_GATEWAY';
SELECT is(pg_temp.ask(), '192 ref_192', 'a case that is closed without an outcome has the refund asked about');
SELECT is(pg_temp.found(192, 'DECLINED') || ' ' || pg_temp.gone(), 'APPLIED FAILED 0', 'and what is said then holds');

-- It failed, the money was sent back by another refund, and now the gateway says that the first went all the same.
SELECT is(pg_temp.sent(3000), 256::bigint, 'what failed is asked for anew');
SELECT billing_test.settle_refund(256, 'SUCCEEDED');
SELECT is(pg_temp.hook('late', 192, 'SUCCEEDED'), 'LOOKUP', 'a success of the first after that is asked about');
SELECT is(pg_temp.ask(), '192 ref_192', 'at once');
SELECT is(
    pg_temp.found(192, 'SUCCEEDED') || ' ' || pg_temp.gone(), 'REJECTED FAILED 3000',
    'and holds up nobody, though it cannot be booked'
);
SELECT results_eq(
    $$SELECT c.kind, c.refund_id FROM billing_ops.open_cases AS c WHERE c.refund_id = 192 AND c.kind <> 'REFUND_FAILED'$$,
    $$VALUES ('REFUND_MISMATCH', 192::bigint)$$, 'a person sees it'
);
SELECT is(pg_temp.state(192), 'FAILED expired_or_canceled_card', 'and nobody asks again and again');
SELECT billing_test.settle_refund(256, 'DECLINED', p_source => 'WEBHOOK', p_code => 'expired_or_canceled_card');
SELECT pg_temp.ask();
SELECT is(pg_temp.found(256, 'DECLINED') || ' ' || pg_temp.gone(), 'APPLIED FAILED 0', 'the other may have failed as well');
SELECT is(
    (SELECT string_agg(s.verdict, ' ' ORDER BY s.refund_id)
     FROM billing_worker.settle_refunds(ARRAY(
         SELECT ROW(
             f.customer_id, f.refund_id, f.claim_epoch, 'SUCCEEDED', 'ref_' || f.refund_id, f.amount, 'USD', NULL, NULL, 'LOOKUP'
         )::billing.refund_result
         FROM billing.refund AS f WHERE f.refund_id IN (192, 256)
     )) AS s),
    'APPLIED REJECTED', 'and where both went after all, the first is booked'
);
SELECT is(pg_temp.gone(), 97::bigint, 'once');
SELECT is(pg_temp.ask(), NULL, 'and nobody is asked');

SELECT throws_ok(
    $$UPDATE billing.refund SET status = 'UNKNOWN', ended_at = NULL WHERE refund_id = 192$$, 'SB901', NULL, 'an end is never taken back'
);
SELECT throws_ok(
    $$UPDATE billing.refund SET failure_code = 'other' WHERE refund_id = 64$$, 'SB901', NULL, 'nor told otherwise'
);
SELECT is_empty('SELECT * FROM billing_test.holes()', 'no event number is missing');
SELECT is_empty('SELECT * FROM billing_ops.check_integrity()', 'every promise holds');
SELECT * FROM finish();
ROLLBACK;
