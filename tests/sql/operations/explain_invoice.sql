-- Every kind of line, derived from what the calculation stored: the formula in words, and what it gives.
BEGIN;
SELECT plan(12);
SELECT billing_test.plans();
CREATE FUNCTION pg_temp.explained(p_subscription_id bigint, p_kind text, p_period_start timestamptz DEFAULT NULL)
RETURNS TABLE (line_no integer, amount bigint, formula text, recomputed bigint)
LANGUAGE sql
AS $function$
    SELECT e.line_no, e.amount, e.formula, e.recomputed
    FROM billing.invoice AS i CROSS JOIN LATERAL billing_ops.explain_invoice(i.invoice_id) AS e
    WHERE i.subscription_id = p_subscription_id AND i.kind = p_kind AND (p_period_start IS NULL OR i.period_start = p_period_start)
    ORDER BY i.invoice_id, e.line_no;
$function$;

-- A full period of three seats.
SELECT billing_test.paid('period', 'TEAM', '2027-04-01Z', 3);
SELECT results_eq(
    $$SELECT * FROM pg_temp.explained(64, 'INITIAL')$$, $$VALUES (1, 3000::bigint, '1000 x 3', 3000::bigint)$$,
    'PERIOD: price times quantity'
);
-- A stub of 10 of the 30 days of April: PRORATION without a change.
SELECT billing_test.paid('stub', 'BASIC', '2027-04-21Z', p_anchor_day => 1);
SELECT results_eq(
    $$SELECT * FROM pg_temp.explained(128, 'INITIAL')$$,
    $$VALUES (1, 1000::bigint, 'floor(3000 x 1 x 864000 s / 2592000 s)', 1000::bigint)$$, 'PRORATION: a stub by its seconds'
);
-- A change down: credit, charge, and the line that balances them.
SELECT billing_test.paid('down', 'PRO', '2027-04-01Z');
SELECT billing_api.change_plan(192, 'BASIC', p_as_of => '2027-04-11Z');
SELECT results_eq(
    $$SELECT * FROM pg_temp.explained(192, 'CHANGE')$$,
    $$VALUES (1, -6000::bigint, '-floor(9000 x 1 x 1728000 s / 2592000 s)', -6000::bigint),
             (2, 2000, 'floor(3000 x 1 x 1728000 s / 2592000 s)', 2000), (3, 4000, '-(sum of the other lines)', 4000)$$,
    'PRORATION and CREDIT: a change down'
);
-- Half was refunded: the credit is limited.
SELECT billing_test.paid('limited', 'BASIC', '2027-04-01Z');
SELECT billing_api.refund_invoice(i.invoice_id, 2000, p_idempotency_key => 'refund', p_as_of => '2027-04-02Z')
FROM billing_api.invoice AS i WHERE i.subscription_id = 256;
SELECT billing_api.change_plan(256, 'PRO', p_as_of => '2027-04-16Z');
SELECT results_eq(
    $$SELECT * FROM pg_temp.explained(256, 'CHANGE')$$,
    $$VALUES (1, -1000::bigint, '-least(floor(3000 x 1 x 1296000 s / 2592000 s), 1000 paid for the period)', -1000::bigint),
             (2, 4500, 'floor(9000 x 1 x 1296000 s / 2592000 s)', 4500)$$,
    'PRORATION: a credit that is limited by what was paid'
);
-- A change that waits for the next invoice, on it: with lines about the period before.
SELECT billing_test.paid('waits', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(320, 'PRO', p_timing => 'NEXT_INVOICE', p_as_of => '2027-04-16Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT results_eq(
    $$SELECT * FROM pg_temp.explained(320, 'RENEWAL')$$,
    $$VALUES (1, 9000::bigint, '9000 x 1', 9000::bigint), (2, -1500, '-floor(3000 x 1 x 1296000 s / 2592000 s)', -1500),
             (3, 4500, 'floor(9000 x 1 x 1296000 s / 2592000 s)', 4500)$$,
    'lines that waited tell the same on the invoice that took them up'
);
-- Too little for the gateway: carried, to a renewal and to a change of interval.
SELECT billing_ops.set_gateway_minimum('sim', 'USD', 50);
SELECT billing_test.paid('carried', 'BASIC', '2027-04-01Z'), billing_test.paid('carried to a year', 'BASIC', '2027-04-01Z');
SELECT billing_api.change_plan(x.no, 'PRO', p_as_of => '2027-04-30 23:50Z') FROM unnest('{384,448}'::bigint[]) AS x (no);
SELECT billing_test.collect(p_as_of => '2027-04-30 23:50Z');
SELECT billing_api.change_plan(448, 'ANNUAL', p_as_of => '2027-04-30 23:55Z');
SELECT billing_worker.renew_due(100, '2027-05-01Z');
SELECT results_eq(
    $$SELECT e.line_no, e.amount, e.formula, e.recomputed FROM pg_temp.explained(384, 'RENEWAL') AS e$$,
    $$SELECT 1, 9000::bigint, '9000 x 1', 9000::bigint
      UNION ALL
      SELECT 2, 2, format('carried by invoice %s', i.invoice_id), 2 FROM billing.invoice AS i
      WHERE i.subscription_id = 384 AND i.carried = 2$$,
    'CARRIED: what the invoice that it comes from carried, onto a renewal'
);
-- Five minutes of 30 days: 1.04 of PRO come back, limited by what was paid; 36000 for the year, and the 2 that were carried.
SELECT is(
    (SELECT array_agg(e.amount ORDER BY e.line_no) = array_agg(e.recomputed ORDER BY e.line_no)
        AND bool_or(e.formula LIKE 'carried by invoice %' AND e.amount = 2)
     FROM pg_temp.explained(448, 'CHANGE', '2027-04-30 23:55Z') AS e),
    true, 'CARRIED: onto a change of interval'
);
-- By hand; and an import, whose running period was paid elsewhere.
SELECT billing_api.create_manual_invoice(64, 150, 'USD', 'Fee', p_idempotency_key => 'manual', p_as_of => '2027-05-01Z');
SELECT results_eq(
    $$SELECT e.line_no, e.amount, e.formula, e.recomputed
      FROM billing.invoice AS i CROSS JOIN LATERAL billing_ops.explain_invoice(i.invoice_id) AS e WHERE i.kind = 'MANUAL'$$,
    $$VALUES (1, 150::bigint, 'as it was given', 150::bigint)$$, 'MANUAL: as an operator gave it'
);
SELECT billing_test.customer('import');
SELECT billing_api.import_subscription(c.customer_id, 'BASIC', '2027-04-15Z', 'import', p_as_of => '2027-05-01Z')
FROM billing.customer AS c WHERE c.external_ref = 'import';
SELECT is_empty(
    $$SELECT e.formula FROM pg_temp.explained(512, 'INITIAL') AS e WHERE e.amount <> 0 OR e.recomputed IS DISTINCT FROM e.amount$$,
    'an imported period is nothing that was billed here'
);

SELECT results_eq(
    'SELECT DISTINCT l.kind FROM billing.invoice_line AS l ORDER BY 1',
    $$SELECT k.kind FROM (VALUES ('CARRIED'), ('CREDIT'), ('MANUAL'), ('PERIOD'), ('PRORATION')) AS k (kind)$$,
    'there is a line of every kind above'
);
SELECT is_empty(
    $$SELECT l.kind FROM unnest('{CARRIED,CREDIT,MANUAL,PERIOD,PRORATION}'::text[]) AS l (kind), pg_catalog.pg_constraint AS c
      WHERE c.conname = 'line_kind_is_known'
        AND pg_catalog.pg_get_constraintdef(c.oid) !~ format('^CHECK \(\(kind = ANY \(ARRAY\[(''\w+''::text(, )?){5}\]\)\)\)$')$$,
    'and there are no other kinds'
);
SELECT is_empty('SELECT * FROM billing_test.broken()', 'every amount is what its formula gives, and no promise is broken');
SELECT * FROM finish();
ROLLBACK;
