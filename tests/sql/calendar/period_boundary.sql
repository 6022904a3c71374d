BEGIN;
SELECT plan(10);

SELECT results_eq(
    $$SELECT billing.period_boundary('2027-01-31 00:00', 'UTC', '1 month', k) FROM generate_series(0, 12) AS k ORDER BY k$$,
    $$VALUES ('2027-01-31Z'::timestamptz), ('2027-02-28Z'), ('2027-03-31Z'), ('2027-04-30Z'), ('2027-05-31Z'), ('2027-06-30Z'),
      ('2027-07-31Z'), ('2027-08-31Z'), ('2027-09-30Z'), ('2027-10-31Z'), ('2027-11-30Z'), ('2027-12-31Z'), ('2028-01-31Z')$$,
    'an anchor on the 31st is clamped to the end of each month and does not drift'
);

SELECT results_eq(
    $$SELECT billing.period_boundary(a, 'UTC', '1 month', k)
      FROM (VALUES ('2028-01-31'::timestamp), ('2027-01-30'), ('2027-01-29')) AS anchor (a), generate_series(1, 3) AS k
      ORDER BY a DESC, k$$,
    $$VALUES ('2028-02-29Z'::timestamptz), ('2028-03-31Z'), ('2028-04-30Z'),
      ('2027-02-28Z'), ('2027-03-30Z'), ('2027-04-30Z'), ('2027-02-28Z'), ('2027-03-29Z'), ('2027-04-29Z')$$,
    'anchors on the 29th, 30th and 31st pass February in leap years and in others'
);

SELECT results_eq(
    $$SELECT billing.period_boundary('2028-02-29', 'UTC', '1 year', k) FROM generate_series(1, 4) AS k ORDER BY k$$,
    $$VALUES ('2029-02-28Z'::timestamptz), ('2030-02-28Z'), ('2031-02-28Z'), ('2032-02-29Z')$$,
    'a year from 29 February ends on 28 February until the next leap year'
);

-- Clamped by hand: the anchor's day, or the last of that month where it has fewer.
SELECT is_empty(
    $$SELECT anchor.day, k
      FROM generate_series(1, 31) AS anchor (day), generate_series(1, 48) AS k
      CROSS JOIN LATERAL (SELECT make_date(2027 + k / 12, 1 + k % 12, 1)) AS m (first_day)
      WHERE billing.period_boundary(make_timestamp(2027, 1, anchor.day, 10, 30, 0), 'UTC', '1 month', k)
      <> (m.first_day + (least(anchor.day, extract(day FROM m.first_day + interval '1 month - 1 day')::integer) - 1)
          + time '10:30') AT TIME ZONE 'UTC'$$,
    'for every day of the month and 48 months the boundary is the anchor''s day, or the last day of the month'
);

SELECT is(
    billing.period_boundary('2027-02-14 02:30', 'America/New_York', '1 month', 1), '2027-03-14 07:30Z'::timestamptz,
    'a local time that daylight saving skips moves forward'
);
SELECT is(
    billing.period_boundary('2027-10-07 01:30', 'America/New_York', '1 month', 1), '2027-11-07 06:30Z'::timestamptz,
    'a local time that happens twice is the one of standard time'
);
SELECT is(
    billing.period_boundary('2027-02-14 02:30', 'America/New_York', '1 month', 2), '2027-04-14 06:30Z'::timestamptz,
    'after a skipped hour the next boundary is at the anchor''s hour again'
);
SELECT is(
    billing.period_boundary('2027-01-31 10:30', 'Europe/Berlin', '1 month', 2), '2027-03-31 08:30Z'::timestamptz,
    'the local hour stays when daylight saving begins'
);

-- 2027-03-01 23:30 in Los Angeles; the change there on 14 March concerns nobody in UTC.
CREATE FUNCTION pg_temp.in_session_zone(p_zone text)
RETURNS timestamptz
LANGUAGE plpgsql
AS $function$
BEGIN
    PERFORM set_config('timezone', p_zone, true);
    RETURN billing.period_boundary('2027-03-02 07:30', 'UTC', '1 month', 1);
END;
$function$;
SELECT results_eq(
    $$SELECT pg_temp.in_session_zone(z)
      FROM unnest('{UTC,America/Los_Angeles,Asia/Kolkata,Pacific/Auckland}'::text[]) AS z$$,
    $$SELECT '2027-04-02 07:30Z'::timestamptz FROM generate_series(1, 4)$$,
    'the time zone of the session does not matter'
);
SELECT is(
    billing.period_boundary('2027-01-31', 'UTC', '1 week', 52), '2028-01-30Z'::timestamptz,
    'weeks are seven days each'
);

SELECT * FROM finish();
ROLLBACK;
