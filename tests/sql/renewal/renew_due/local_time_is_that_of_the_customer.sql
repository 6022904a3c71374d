-- Daylight saving: boundaries keep the local hour; a skipped one moves forward, one that happens twice is the second.
BEGIN;
SELECT plan(5);

SELECT billing_test.clock('2028-06-01T00:00:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
SELECT billing_api.create_plan('DAILY', 'Daily', 100, 'USD', 'DAY', p_as_of => '2027-01-01T00:00:00Z');

CREATE FUNCTION pg_temp.sell(p_name text, p_plan text, p_zone text, p_at timestamptz, p_until timestamptz)
RETURNS SETOF timestamptz
LANGUAGE plpgsql
AS $function$
DECLARE
    v_subscription_id bigint :=
        billing_test.paid_subscription(billing_test.customer(p_name, p_time_zone => p_zone), p_plan, p_as_of => p_at);
    v_due timestamptz;
BEGIN
    LOOP
        SELECT s.next_renewal_at INTO STRICT v_due FROM billing.subscription AS s WHERE s.subscription_id = v_subscription_id;
        EXIT WHEN v_due > p_until;
        PERFORM billing_worker.renew_due(1, v_due);
    END LOOP;
    PERFORM billing_api.cancel_subscription(v_subscription_id, p_at_period_end => true, p_as_of => v_due - interval '1 hour');
    PERFORM billing_worker.renew_due(1, v_due);
    RETURN QUERY SELECT p.period_end FROM billing.subscription_period AS p
    WHERE p.subscription_id = v_subscription_id ORDER BY p.period_start;
END;
$function$;

SELECT results_eq(
    $$SELECT pg_temp.sell('gap', 'BASIC', 'America/New_York', '2027-01-14T07:30:00Z', '2027-03-14T07:30:00Z')$$,
    $$VALUES ('2027-02-14T07:30:00Z'::timestamptz), ('2027-03-14T07:30:00Z'), ('2027-04-14T06:30:00Z')$$,
    'half past two in the skipped night of 14 March becomes half past three, and is half past two again in April'
);
SELECT results_eq(
    $$SELECT pg_temp.sell('overlap', 'BASIC', 'America/New_York', '2027-09-07T05:30:00Z', '2027-11-07T06:30:00Z')$$,
    $$VALUES ('2027-10-07T05:30:00Z'::timestamptz), ('2027-11-07T06:30:00Z'), ('2027-12-07T06:30:00Z')$$,
    'half past one on 7 November, which happens twice, is the one of standard time'
);
SELECT results_eq(
    $$SELECT pg_temp.sell('berlin', 'BASIC', 'Europe/Berlin', '2027-02-28T09:30:00Z', '2027-03-28T08:30:00Z')$$,
    $$VALUES ('2027-03-28T08:30:00Z'::timestamptz), ('2027-04-28T08:30:00Z')$$,
    'half past ten in Berlin stays half past ten when summer time begins'
);
SELECT results_eq(
    $$SELECT pg_temp.sell('daily', 'DAILY', 'America/New_York', '2027-03-12T17:00:00Z', '2027-03-14T16:00:00Z')$$,
    $$VALUES ('2027-03-13T17:00:00Z'::timestamptz), ('2027-03-14T16:00:00Z'), ('2027-03-15T16:00:00Z')$$,
    'a daily period has 23 hours on the day on which the clock goes forward'
);
SELECT is_empty(
    $$SELECT i.invoice_id, i.total FROM billing.invoice AS i WHERE i.total <> i.unit_amount$$,
    'and costs as much as any other'
);

SELECT * FROM finish();
ROLLBACK;
