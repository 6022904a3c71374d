-- The lines of a change, from literal input: what is floored, what is left out, what limits a credit.
BEGIN;
SELECT plan(9);

CREATE FUNCTION pg_temp.lines(p_overrides jsonb)
RETURNS TABLE (line text)
LANGUAGE sql
AS $function$
    SELECT concat_ws(
        ' ', l.line_no, l.kind, l.amount, 'of ' || l.base_invoice_id, l.seconds_billed || '/' || l.seconds_total, 'at most ' || l.at_most
    )
    FROM billing.change_lines(jsonb_populate_record(NULL::billing.plan_change, '{
        "from_plan_code": "OLD", "to_plan_name": "New", "from_unit_amount": 4900, "from_quantity": 1, "to_unit_amount": 9900, "to_quantity": 1,
        "opens_period": false, "base_invoice_id": 7, "effective_at": "2027-01-25Z", "period_end": "2027-02-14Z", "seconds_left": 1728000,
        "seconds_total": 2592000, "creditable": 4900
    }'::jsonb || p_overrides)) AS l
    ORDER BY l.line_no;
$function$;

SELECT results_eq(
    $$SELECT * FROM pg_temp.lines('{}')$$,
    $$VALUES ('1 PRORATION -3266 of 7 1728000/2592000'), ('2 PRORATION 6600 of 7 1728000/2592000')$$, 'both sides are floored'
);
SELECT results_eq(
    $$SELECT * FROM pg_temp.lines('{"creditable": 3000}')$$,
    $$VALUES ('1 PRORATION -3000 of 7 1728000/2592000 at most 3000'), ('2 PRORATION 6600 of 7 1728000/2592000')$$,
    'a credit is never more than was paid'
);
SELECT results_eq(
    $$SELECT * FROM pg_temp.lines('{"creditable": 0}')$$,
    $$VALUES ('1 PRORATION 6600 of 7 1728000/2592000')$$, 'and a line of zero is left out'
);
SELECT results_eq(
    $$SELECT * FROM pg_temp.lines('{"creditable": -5}')$$,
    $$VALUES ('1 PRORATION 6600 of 7 1728000/2592000')$$, 'less than nothing is nothing'
);
SELECT results_eq(
    $$SELECT * FROM pg_temp.lines('{"seconds_left": 2592000}')$$,
    $$VALUES ('1 PRORATION -4900 of 7 2592000/2592000'), ('2 PERIOD 9900 of 7')$$,
    'at the start of a period the new price is a full one'
);
SELECT is_empty($$SELECT * FROM pg_temp.lines('{"seconds_left": 0}')$$, 'at its end there is nothing to bill');
SELECT results_eq(
    $$SELECT * FROM pg_temp.lines('{"opens_period": true}')$$, $$VALUES ('1 PRORATION -3266 of 7 1728000/2592000'), ('2 PERIOD 9900')$$,
    'a new interval is a full period, and its own base'
);
SELECT results_eq(
    $$SELECT * FROM pg_temp.lines('{"from_unit_amount": 0, "to_quantity": 3}')$$,
    $$VALUES ('1 PRORATION 19800 of 7 1728000/2592000')$$, 'what was free gives nothing back'
);
SELECT results_eq(
    $$SELECT *
      FROM pg_temp.lines('{"from_unit_amount": 1000000000, "from_quantity": 1000000, "to_unit_amount": 1000000000, "to_quantity": 1000000,
                                    "seconds_left": 315359999, "seconds_total": 315360000, "creditable": 1000000000000000}')$$,
    $$VALUES ('1 PRORATION -999999996829020 of 7 315359999/315360000'), ('2 PRORATION 999999996829020 of 7 315359999/315360000')$$,
    'the largest amounts over ten years do not overflow, and cancel each other exactly'
);
SELECT * FROM finish();
ROLLBACK;
