-- What the gateway has settled against what we know, in both directions; each difference is a case, once.
BEGIN;
SELECT plan(17);
SELECT billing_test.clock('2027-05-01Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();
SELECT billing_test.paid_subscription(64, p_resource_ref => 'a');
SELECT billing_test.paid_subscription(64, p_resource_ref => 'b');
SELECT billing_test.paid_subscription(64, p_resource_ref => 'c');
SELECT billing_test.subscription(64, p_resource_ref => 'd');
SELECT billing_test.start('2027-05-01Z');
SELECT billing_test.report(256, 'UNKNOWN', '2027-05-01Z');
SELECT billing_api.refund_invoice(64, 100, 'r');
SELECT billing_worker.start_refunds('sim', 10, 'w');
SELECT billing_test.settle_refund(64, 'SUCCEEDED');
CREATE FUNCTION pg_temp.load(VARIADIC p_lines text[])
RETURNS bigint
LANGUAGE sql
AS $function$
    WITH opened AS MATERIALIZED (
        SELECT billing_ops.open_settlement_report('sim', '2027-05-01Z', '2027-05-02Z') AS id
    )
    SELECT o.id
    FROM opened AS o
    CROSS JOIN LATERAL billing_ops.add_settlement_lines(o.id, (SELECT array_agg(l::billing.settled_item) FROM unnest(p_lines) AS l)) AS n;
$function$;

SELECT is_empty(
    $$SELECT d.* FROM billing_ops.compare_settlement(pg_temp.load(
        '(CHARGE,pay_64,,3000,USD)', '(CHARGE,pay_128,,3000,USD)', '(CHARGE,pay_192,,3000,USD)', '(REFUND,ref_64,,100,USD)')) AS d$$,
    'what agrees is no difference'
);
SELECT is_empty('SELECT * FROM billing_ops.open_cases', 'and no case');

-- One missing there, one with another amount, one that we do not know, one whose outcome we do not know.
CREATE TEMPORARY TABLE found AS
SELECT d.*
FROM billing_ops.compare_settlement(pg_temp.load(
    '(CHARGE,pay_64,,3000,USD)', '(CHARGE,pay_192,,2900,USD)', '(CHARGE,pay_x,,77,EUR)',
    format('(CHARGE,pay_late,%s,3000,USD)', (SELECT a.idempotency_key FROM billing.payment_attempt AS a WHERE a.attempt_id = 256)),
    '(REFUND,ref_x,,5,USD)'
)) AS d;
SELECT results_eq(
    'SELECT f.kind, f.item, f.gateway_id, f.attempt_id, f.amount FROM found AS f ORDER BY f.kind, f.item, f.gateway_id',
    $$VALUES
        ('MISSING_AT_GATEWAY', 'CHARGE', 'pay_128', 128::bigint, 3000::bigint),
        ('MISSING_AT_GATEWAY', 'REFUND', 'ref_64', NULL, 100),
        ('MISSING_HERE', 'CHARGE', 'pay_late', 256, 3000),
        ('MISSING_HERE', 'CHARGE', 'pay_x', NULL, 77),
        ('MISSING_HERE', 'REFUND', 'ref_x', NULL, 5),
        ('SETTLEMENT_MISMATCH', 'CHARGE', 'pay_192', 192, 2900)$$,
    'each difference is found, in both directions'
);
SELECT is((SELECT count(*) FROM billing_ops.open_cases), 6::bigint, 'each is a case');
SELECT is(
    (SELECT a.next_lookup_at FROM billing.payment_attempt AS a WHERE a.attempt_id = 256),
    '2027-05-01Z', 'the open one is looked up at once'
);
SELECT is(
    (SELECT count(*) FROM billing.payment_attempt AS a WHERE a.status = 'SUCCEEDED'), 3::bigint, 'nothing is booked from a report'
);
SELECT is(
    (SELECT count(*) FROM billing_ops.compare_settlement(pg_temp.load(
        '(CHARGE,pay_64,,3000,USD)', '(CHARGE,pay_128,,3000,USD)', '(CHARGE,pay_192,,2900,USD)', '(REFUND,ref_64,,100,USD)'
    ))),
    1::bigint, 'the next report repeats a difference'
);
SELECT is((SELECT count(*) FROM billing_ops.open_cases), 6::bigint, 'which gets no second case');
SELECT is(
    (SELECT concat_ws(' ', c.resolved_by IS NOT NULL, c.resolution) FROM billing_ops.open_cases AS o,
     LATERAL billing_ops.resolve_case(o.case_id, 'test payment of the gateway itself') AS c WHERE o.detail ->> 'gatewayId' = 'pay_x'),
    't test payment of the gateway itself', 'a person closes it with who and why'
);
SELECT throws_ok(
    $$SELECT billing_ops.resolve_case(c.case_id, 'again') FROM billing.reconciliation_case AS c WHERE c.resolved_at IS NOT NULL$$,
    'SB334', NULL, 'once'
);
-- The open attempt: the operator finds it in the books of the gateway.
SELECT lives_ok(
    $$SELECT billing_ops.resolve_case(o.case_id, 'seen in their books', 'CHARGED', 'pay_late')
     FROM billing_ops.open_cases AS o WHERE o.attempt_id = 256$$,
    'an operator decides the unknown one'
);
SELECT is((SELECT i.status FROM billing.invoice AS i WHERE i.invoice_id = 256), 'PAID', 'which pays its invoice');

SELECT throws_ok($$SELECT billing_ops.add_settlement_lines(1, '{}')$$, 'SB211', NULL, 'an unknown report');
SELECT throws_ok($$SELECT pg_temp.load('(CHARGE,p,,-1,USD)')$$, 'SB101', NULL, 'a negative amount');
SELECT throws_ok(
    $$SELECT pg_temp.load('(CHARGE,p,,1,USD)', '(CHARGE,p,,2,USD)')$$, 'SB101', NULL, 'two amounts for one payment'
);
SELECT throws_ok(
    $$SELECT billing_ops.open_settlement_report('sim', '2027-05-02Z', '2027-05-01Z')$$,
    'SB101', NULL, 'a span that ends before it begins'
);
SELECT is_empty($$SELECT * FROM billing_ops.check_integrity() WHERE severity = 'BROKEN'$$, 'no promise is broken');
SELECT * FROM finish();
ROLLBACK;
