-- A pure function of policy, failures and invoice: a replay gives the same instant.
BEGIN;
SELECT plan(15);

CREATE FUNCTION pg_temp.rung(p_policy text, p_failure_count integer, p_invoice_id bigint DEFAULT 64)
RETURNS timestamptz
LANGUAGE sql
AS $function$
    SELECT billing.next_rung(d, p_failure_count, '2027-05-01T12:00:00Z', '2027-05-20T12:00:00Z', p_invoice_id)
    FROM billing.dunning_policy AS d WHERE d.code = p_policy;
$function$;

SELECT is(
    ARRAY(SELECT pg_temp.rung('fixed_1357', n) FROM generate_series(1, 5) AS n),
    '{2027-05-02T12:00Z,2027-05-04T12:00Z,2027-05-06T12:00Z,2027-05-08T12:00Z,NULL}',
    'fixed_1357: 1, 3, 5, 7 days from the first failure; after the fifth nothing'
);
SELECT is(
    ARRAY(SELECT pg_temp.rung('exponential', n) FROM generate_series(1, 5) AS n),
    '{2027-05-21T12:00Z,2027-05-22T12:00Z,2027-05-24T12:00Z,2027-05-28T12:00Z,NULL}',
    'exponential: 1, 2, 4, 8 days, each from the failure before'
);
SELECT is(
    ARRAY(SELECT pg_temp.rung('store_grace', n) FROM generate_series(1, 4) AS n),
    '{2027-05-02T12:00Z,2027-05-04T12:00Z,2027-05-06T12:00Z,NULL}', 'store_grace: 1, 3, 5 days from the first failure'
);
SELECT ok(
    (SELECT bool_and(pg_temp.rung('standard', 1, i) BETWEEN '2027-05-21T12:00Z' AND '2027-05-21T14:00Z')
        FROM generate_series(0, 64000, 64) AS i),
    'standard: the first retry comes 1 day to 1 day 2 hours after the failure, whatever the invoice'
);
SELECT ok(
    (SELECT bool_and(pg_temp.rung('standard', 2, i) BETWEEN '2027-05-23T12:00Z' AND '2027-05-23T14:00Z')
        FROM generate_series(0, 6400, 64) AS i),
    'standard: the second 3 days to 3 days 2 hours after that'
);
SELECT ok(
    (SELECT bool_and(pg_temp.rung('standard', 3, i) BETWEEN '2027-05-25T12:00Z' AND '2027-05-25T14:00Z')
        FROM generate_series(0, 6400, 64) AS i),
    'standard: the third 5 days to 5 days 2 hours after that'
);
SELECT is(pg_temp.rung('standard', 4), NULL, 'standard: after the fourth failure there is none');
SELECT is(pg_temp.rung('standard', 0), NULL, 'before the first failure there is none either');
SELECT is(pg_temp.rung('standard', 400), NULL, 'nor far beyond the ladder');
SELECT is(pg_temp.rung('standard', 1), pg_temp.rung('standard', 1), 'the jitter is the same when it is computed again');
SELECT ok(
    (SELECT count(DISTINCT pg_temp.rung('standard', 1, i)) > 900 FROM generate_series(64, 64000, 64) AS i),
        'and spreads a thousand invoices'
);
SELECT ok(
    (SELECT count(DISTINCT pg_temp.rung('standard', n) - '2027-05-20T12:00Z' - make_interval(days => 2 * n - 1)) = 3
        FROM generate_series(1, 3) AS n),
    'each failure has a jitter of its own'
);
SELECT is(
    (SELECT billing.next_rung(
        jsonb_populate_record(NULL::billing.dunning_policy, '{"counted_from": "FIRST_FAILURE", "jitter_minutes": 0}'), 1, now(), now(), 1
    )), NULL, 'a policy without retries has no rung'
);

CREATE FUNCTION pg_temp.in_zone(p_zone text)
RETURNS timestamptz
LANGUAGE plpgsql
AS $function$
BEGIN
    PERFORM set_config('timezone', p_zone, true);
    RETURN billing.next_rung(
        jsonb_populate_record(
            NULL::billing.dunning_policy, '{"counted_from": "FIRST_FAILURE", "jitter_minutes": 0, "retry_after": ["30 days"]}'
        ), 1, '2027-03-01T12:00:00Z', now(), 1
    );
END;
$function$;
SELECT results_eq(
    $$SELECT pg_temp.in_zone(z) FROM unnest('{UTC,America/New_York,Pacific/Auckland}'::text[]) AS z$$,
    $$SELECT '2027-03-31T12:00:00Z'::timestamptz FROM generate_series(1, 3)$$,
    'thirty days have 720 hours in every session''s time zone'
);
SET LOCAL timezone = 'UTC';
SELECT is(
    (SELECT max(pg_temp.rung('standard', 1, i)) - min(pg_temp.rung('standard', 1, i)) <= '2 hours'
        FROM generate_series(0, 640000, 64) AS i), true,
    'ten thousand invoices stay within the two hours'
);

SELECT * FROM finish();
ROLLBACK;
