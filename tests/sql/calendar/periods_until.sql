BEGIN;
SELECT plan(9);
SELECT is(billing.periods_until('2027-01-31', 'UTC', '1 mon', '2027-01-31Z'), 0, 'the anchor itself is boundary 0');
SELECT is(billing.periods_until('2027-01-31', 'UTC', '1 mon', '2027-01-31 00:00:01Z'), 1, 'a second later it is the next');
SELECT is(billing.periods_until('2027-01-31', 'UTC', '1 mon', '2027-02-28Z'), 1, 'a boundary that is met counts');
SELECT is(billing.periods_until('2027-01-31', 'UTC', '1 mon', '2026-01-01Z'), 0, 'before the anchor there is nothing to count');
SELECT is(billing.periods_until('2027-01-31', 'UTC', '1 mon', NULL), NULL, 'until nothing nothing is counted');
SELECT is(billing.periods_until('2027-01-31', 'UTC', '1 year', '2427-01-31Z'), 400, 'four hundred years');
SELECT is(billing.periods_until('2027-01-01', 'UTC', '1 day', '2127-01-01Z'), 36524, 'a century of days');
-- Found by guessing, it is what counting one by one gives.
SELECT is_empty(
    $$SELECT z.name, l.length, u.until
      FROM (VALUES ('UTC'), ('America/New_York'), ('Australia/Lord_Howe'), ('Pacific/Apia')) AS z (name)
      CROSS JOIN (VALUES ('1 day'::interval), ('30 days'), ('1 week'), ('1 mon'), ('5 mons'), ('1 year'), ('10 years')) AS l (length)
      CROSS JOIN (VALUES ('2011-02-28 02:30'::timestamp), ('2011-12-31'), ('2012-02-29 23:59:59')) AS a (anchor)
      CROSS JOIN (VALUES ('2012-02-29 09:00Z'::timestamptz), ('2012-11-04 06:30Z'), ('2025-07-01Z')) AS u (until)
      WHERE billing.periods_until(a.anchor, z.name, l.length, u.until) IS DISTINCT FROM (
          SELECT min(k) FROM generate_series(0, 6000) AS k WHERE billing.period_boundary(a.anchor, z.name, l.length, k) >= u.until
      )$$,
    'it is what counting gives, across leap days, clock changes and a day that a zone skipped'
);
SELECT results_eq(
    $$SELECT a.x, billing.is_same_length(a.x::interval, a.y::interval)
      FROM (VALUES ('1 year', '12 mons'), ('1 mon', '30 days'), ('1 week', '7 days'), ('1 year', '365 days'),
          ('1 mon', '1 mon'), ('2 mons', '1 mon')) AS a (x, y)$$,
    $$VALUES ('1 year', true), ('1 mon', false), ('1 week', true), ('1 year', false), ('1 mon', true), ('2 mons', false)$$,
    'twelve months are a year, thirty days are no month'
);
SELECT * FROM finish();
ROLLBACK;
