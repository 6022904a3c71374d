-- A worker compares each day once, in order, and what goes on over midnight is found on either side of it.
BEGIN;
SELECT plan(19);
SELECT billing_test.clock('2027-05-01T12:00:00Z');
SELECT billing_test.customer('c');
SELECT billing_test.plan();

CREATE FUNCTION pg_temp.due()
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(to_char(r.covers_from, 'MM-DD HH24:MI') || ' ' || to_char(r.covers_to, 'MM-DD HH24:MI'), ', ')
    FROM billing_worker.due_settlement_report('sim') AS r;
$function$;

CREATE FUNCTION pg_temp.compare(VARIADIC p_lines text[])
RETURNS integer
LANGUAGE plpgsql
AS $function$
DECLARE
    v_report bigint := (SELECT r.settlement_report_id FROM billing_worker.due_settlement_report('sim') AS r);
BEGIN
    PERFORM billing_worker.load_settlement_lines(
        v_report, ARRAY(SELECT l::billing.settled_item FROM unnest(p_lines) AS l)
    );
    RETURN billing_worker.close_settlement_report(v_report);
END;
$function$;

SELECT is(pg_temp.due(), NULL, 'before the first attempt nothing is due');
SELECT billing_test.paid_subscription(64, p_resource_ref => 'a');
SELECT billing_test.subscription(64, p_resource_ref => 'b');
SELECT billing_test.subscription(64, p_resource_ref => 'c');
-- Two begin before midnight and end after it.
SELECT billing_test.clock('2027-05-01T23:59:59Z');
SELECT billing_test.start('2027-05-01T23:59:59Z');
SELECT billing_test.clock('2027-05-02T00:00:01Z');
SELECT billing_test.report(128, 'SUCCEEDED', '2027-05-02T00:00:01Z', p_payment_id => 'pay_128');
SELECT billing_test.report(192, 'SUCCEEDED', '2027-05-02T00:00:01Z', p_payment_id => 'pay_192');

SELECT billing_test.clock('2027-05-02T05:59:59Z');
SELECT is(pg_temp.due(), NULL, 'a day is due six hours after its end, not before');
SELECT billing_test.clock('2027-05-02T06:00:00Z');
SELECT is(pg_temp.due(), '05-01 00:00 05-02 00:00', 'the first is that of the first attempt, a whole day of UTC');
SELECT is(pg_temp.due(), '05-01 00:00 05-02 00:00', 'which stays due until it was compared');
SELECT is((SELECT count(*) FROM billing.settlement_report), 1::bigint, 'as the same report');
SELECT billing_ops.pause_collecting('sim');
SELECT is(pg_temp.due(), NULL, 'while no money may move, nobody asks');
SELECT billing_ops.resume_collecting('sim');

-- The gateway has booked one of the two before midnight; another database charges through the same account.
SELECT is(
    pg_temp.compare(
        '(CHARGE,pay_64,,3000,USD)', '(CHARGE,pay_128,,3000,USD)',
        '(CHARGE,pay_of_another,other123-inv-64-try-1,3000,USD)', '(REFUND,ref_of_another,other123-inv-64-refund-1,5,USD)'
    ),
    0, 'what is booked on the other side of midnight, or belongs to another database, is no difference'
);
SELECT is(pg_temp.due(), NULL, 'a day that was compared is not due again');
SELECT throws_ok(
    $$SELECT billing_worker.close_settlement_report(r.settlement_report_id) FROM billing.settlement_report AS r$$,
    'SB211', NULL, 'nor compared twice, by whoever was slower'
);

SELECT billing_test.clock('2027-05-05T12:00:00Z');
SELECT is(pg_temp.due(), '05-02 00:00 05-03 00:00', 'days are taken in order, however long nobody asked');
SELECT is(pg_temp.compare('(CHARGE,pay_x,,77,USD)'), 2, 'what is booked nowhere is found, and what is booked here only by them');
SELECT results_eq(
    $$SELECT o.kind, o.detail ->> 'gatewayId' FROM billing_ops.open_cases AS o ORDER BY o.kind$$,
    $$VALUES ('MISSING_AT_GATEWAY', 'pay_192'), ('MISSING_HERE', 'pay_x')$$,
    'each with a case'
);
SELECT is(pg_temp.due(), '05-03 00:00 05-04 00:00', 'the next day');
SELECT is(
    pg_temp.compare(format('(CHARGE,pay_y,%s-inv-6400-try-1,5,USD)', (SELECT d.key_prefix FROM billing.database_identity AS d))),
    1, 'a key of ours that we do not know is a difference: a database that was lost may have sent it'
);
SELECT is(pg_temp.due(), '05-04 00:00 05-05 00:00', 'the day after');
SELECT is(pg_temp.compare(VARIADIC ARRAY[]::text[]), 0, 'a day without a line agrees with a day without a payment');
SELECT is(pg_temp.due(), NULL, 'the present day is not over');

-- Much later: an account that nobody has asked about.
SELECT billing_test.gateway('later');
SELECT is_empty(
    $$SELECT * FROM billing_worker.due_settlement_report('later')$$, 'an account without an attempt has no due day'
);
SELECT throws_ok($$SELECT billing_worker.due_settlement_report('nobody')$$, 'SB206', NULL, 'an unknown account');
SELECT * FROM finish();
ROLLBACK;
