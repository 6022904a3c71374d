BEGIN;
SELECT plan(13);

CREATE FUNCTION pg_temp.first(p_zone text, p_anchor_day integer, p_length interval, p_start timestamptz)
RETURNS SETOF billing.first_period
LANGUAGE sql
AS $function$
    SELECT f.* FROM billing.first_period(p_zone, p_anchor_day, p_length, p_start) AS f;
$function$;

SELECT row_eq(
    $$SELECT * FROM pg_temp.first('Europe/Berlin', NULL, '1 month', '2027-01-31 10:30Z')$$,
    ROW('2027-01-31 11:30'::timestamp, 1, '2027-01-31 10:30Z'::timestamptz, '2027-02-28 10:30Z'::timestamptz,
        '2027-01-31 10:30Z'::timestamptz)::billing.first_period,
    'anniversary billing is anchored at the local time of the start and begins with a full period'
);
SELECT row_eq(
    $$SELECT * FROM pg_temp.first('UTC', 1, '1 month', '2027-02-15Z')$$,
    ROW('2027-02-01'::timestamp, 1, '2027-02-15Z'::timestamptz, '2027-03-01Z'::timestamptz, '2027-02-01Z'::timestamptz)
    ::billing.first_period,
    'calendar billing begins with a stub up to the next such day'
);
SELECT row_eq(
    $$SELECT * FROM pg_temp.first('UTC', 1, '1 month', '2027-03-01Z')$$,
    ROW('2027-03-01'::timestamp, 1, '2027-03-01Z'::timestamptz, '2027-04-01Z'::timestamptz, '2027-03-01Z'::timestamptz)
    ::billing.first_period,
    'a start exactly on a boundary begins with a full period'
);
SELECT row_eq(
    $$SELECT * FROM pg_temp.first('UTC', 31, '1 month', '2027-02-15Z')$$,
    ROW('2027-01-31'::timestamp, 1, '2027-02-15Z'::timestamptz, '2027-02-28Z'::timestamptz, '2027-01-31Z'::timestamptz)
    ::billing.first_period,
    'the 31st in mid February is anchored on 31 January and ends on 28 February'
);
SELECT row_eq(
    $$SELECT * FROM pg_temp.first('UTC', 31, '1 month', '2027-02-28 10:00Z')$$,
    ROW('2027-01-31'::timestamp, 2, '2027-02-28 10:00Z'::timestamptz, '2027-03-31Z'::timestamptz,
        '2027-02-28Z'::timestamptz)::billing.first_period,
    'after the clamped boundary of February the stub runs to 31 March'
);
SELECT row_eq(
    $$SELECT * FROM pg_temp.first('UTC', 31, '1 month', '2027-02-28Z')$$,
    ROW('2027-01-31'::timestamp, 2, '2027-02-28Z'::timestamptz, '2027-03-31Z'::timestamptz, '2027-02-28Z'::timestamptz)
    ::billing.first_period,
    'exactly on the clamped boundary the period is full'
);
SELECT row_eq(
    $$SELECT * FROM pg_temp.first('UTC', 30, '1 month', '2028-02-29 12:00Z')$$,
    ROW('2028-01-30'::timestamp, 2, '2028-02-29 12:00Z'::timestamptz, '2028-03-30Z'::timestamptz,
        '2028-02-29Z'::timestamptz)::billing.first_period,
    'the 30th passes the February of a leap year'
);
SELECT row_eq(
    $$SELECT * FROM pg_temp.first('UTC', 1, '3 months', '2027-02-15Z')$$,
    ROW('2027-02-01'::timestamp, 1, '2027-02-15Z'::timestamptz, '2027-05-01Z'::timestamptz, '2027-02-01Z'::timestamptz)
    ::billing.first_period,
    'the stub of a quarter runs to the end of the quarter that begins on the day before the start'
);
SELECT row_eq(
    $$SELECT * FROM pg_temp.first('UTC', 1, '1 year', '2027-02-15Z')$$,
    ROW('2027-02-01'::timestamp, 1, '2027-02-15Z'::timestamptz, '2028-02-01Z'::timestamptz, '2027-02-01Z'::timestamptz)
    ::billing.first_period,
    'the stub of a year likewise'
);
SELECT row_eq(
    $$SELECT * FROM pg_temp.first('Asia/Tokyo', 1, '1 month', '2027-01-31 15:00Z')$$,
    ROW('2027-02-01'::timestamp, 1, '2027-01-31 15:00Z'::timestamptz, '2027-02-28 15:00Z'::timestamptz,
        '2027-01-31 15:00Z'::timestamptz)::billing.first_period,
    'midnight is that of the customer'
);
SELECT row_eq(
    $$SELECT * FROM pg_temp.first('Africa/Cairo', 26, '1 month', '2024-04-25 22:00Z')$$,
    ROW('2024-04-26'::timestamp, 1, '2024-04-25 22:00Z'::timestamptz, '2024-05-25 21:00Z'::timestamptz,
        '2024-04-25 22:00Z'::timestamptz)::billing.first_period,
    'where midnight is skipped, the day begins at one, and that is its boundary'
);
SELECT row_eq(
    $$SELECT * FROM pg_temp.first('America/Havana', 3, '1 month', '2024-11-03 04:30Z')$$,
    ROW('2024-11-03'::timestamp, 0, '2024-11-03 04:30Z'::timestamptz, '2024-11-03 05:00Z'::timestamptz,
        '2024-10-03 04:00Z'::timestamptz)::billing.first_period,
    'where midnight happens twice, the second one is the boundary, and a start between the two comes before it'
);

SELECT is_empty(
    $$SELECT d.day, s.at
      FROM generate_series(1, 31) AS d (day),
           generate_series('2027-01-01 00:00Z'::timestamptz, '2028-03-31 00:00Z', '17 hours') AS s (at)
      CROSS JOIN LATERAL pg_temp.first('Europe/Berlin', d.day, '1 month', s.at) AS f
      WHERE NOT (f.full_start <= f.period_start AND f.period_start < f.period_end)
         OR f.full_start <> billing.period_boundary(f.anchor_at, 'Europe/Berlin', '1 month', f.period_no - 1)
         OR f.period_end <> billing.period_boundary(f.anchor_at, 'Europe/Berlin', '1 month', f.period_no)$$,
    'on every day of the month and from every hour the start lies between boundary k - 1 and boundary k'
);

SELECT * FROM finish();
ROLLBACK;
