BEGIN;
SELECT plan(3);

SELECT is(
    billing.local_days_later('2027-03-20 10:00Z', 14, 'UTC'), '2027-04-03 10:00Z'::timestamptz,
    'in UTC a day has 24 hours'
);
SELECT is(
    billing.local_days_later('2027-03-20 10:00Z', 14, 'Europe/Berlin'), '2027-04-03 09:00Z'::timestamptz,
    'where daylight saving begins meanwhile, the local hour stays'
);
SELECT is(
    billing.local_days_later('2027-03-13 07:30Z', 1, 'America/New_York'), '2027-03-14 07:30Z'::timestamptz,
    'an end in the skipped hour moves forward'
);

SELECT * FROM finish();
ROLLBACK;
