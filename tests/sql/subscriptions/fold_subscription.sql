-- Folding the log, together with the timeline, gives the row: after every kind of call and of boundary.
BEGIN;
SELECT plan(10);
SELECT billing_test.plans();
SELECT billing_api.create_plan('WEEK', 'Week', 700, 'USD', 'WEEK', p_as_of => '2026-01-01Z');

CREATE FUNCTION pg_temp.unexplained()
RETURNS SETOF text
LANGUAGE sql
AS $function$
    -- All columns but those that the log leaves out on purpose.
    SELECT format('%s of %s: row %s, log %s', r.key, s.subscription_id, r.value, to_jsonb(f) -> r.key)
    FROM billing.subscription AS s
    CROSS JOIN LATERAL billing.fold_subscription(s.customer_id, s.subscription_id) AS f
    CROSS JOIN LATERAL jsonb_each(to_jsonb(s)) AS r
    WHERE r.key NOT IN ('version', 'next_renewal_at', 'catch_up_run_id', 'catch_up_periods')
      AND r.value IS DISTINCT FROM to_jsonb(f) -> r.key;
$function$;

CREATE FUNCTION pg_temp.step(p_statement text)
RETURNS text
LANGUAGE plpgsql
AS $function$
BEGIN
    EXECUTE p_statement;
    RETURN (SELECT p_statement || ' -> ' || string_agg(u.problem, '; ') FROM pg_temp.unexplained() AS u (problem));
END;
$function$;

-- A sign-up of each kind.
SELECT billing_test.paid('paid', 'BASIC', '2027-01-31Z'), billing_test.paid('calendar', 'BASIC', '2027-01-31Z', p_anchor_day => 15),
    billing_test.paid('term', 'BASIC', '2027-01-31Z', p_term_periods => 3);
SELECT billing_api.create_subscription(x.customer_id, 'BASIC', 'k', p_trial_days => 14, p_as_of => '2027-01-31Z')
FROM billing_test.customer('trial') AS x (customer_id);
SELECT billing_api.create_subscription(x.customer_id, 'BASIC', 'k', p_payment_behavior => 'GRANT_FIRST', p_as_of => '2027-01-31Z')
FROM billing_test.customer('granted') AS x (customer_id);
SELECT billing_api.create_subscription(x.customer_id, 'FREE', 'k', p_as_of => '2027-01-31Z')
FROM billing_test.customer('free') AS x (customer_id);
SELECT billing_api.import_subscription(x.customer_id, 'BASIC', '2027-01-31Z', 'k', p_as_of => '2027-01-31Z')
FROM billing_test.customer('imported') AS x (customer_id);
SELECT billing_test.collect(p_as_of => '2027-01-31Z');
SELECT is_empty('SELECT * FROM pg_temp.unexplained()', 'after sign-ups of every kind');

SELECT is_empty($$SELECT s.problem FROM unnest(ARRAY[
    'SELECT billing_api.change_plan(64, ''PRO'', p_as_of => ''2027-02-05Z'')',
    'SELECT billing_test.collect(p_as_of => ''2027-02-05Z'')',
    'SELECT billing_api.change_plan(64, ''BASIC'', 2, p_timing => ''AT_PERIOD_END'', p_as_of => ''2027-02-06Z'')',
    'SELECT billing_api.undo_change(64, p_as_of => ''2027-02-06Z'')',
    'SELECT billing_api.change_plan(64, ''WEEK'', 2, p_timing => ''AT_PERIOD_END'', p_as_of => ''2027-02-06Z'')',
    'SELECT billing_api.change_plan(128, ''ANNUAL'', p_payment_behavior => ''GRANT_FIRST'', p_as_of => ''2027-02-06Z'')',
    'SELECT billing_api.change_plan(192, ''WEEK'', p_timing => ''AT_PERIOD_END'', p_as_of => ''2027-02-06Z'')',
    'SELECT billing_api.change_plan(256, ''ANNUAL'', p_as_of => ''2027-02-06Z'')'
]) WITH ORDINALITY AS x (statement, no) CROSS JOIN LATERAL pg_temp.step(x.statement) AS s (problem) WHERE s.problem IS NOT NULL$$,
'after changes');
SELECT is_empty($$SELECT s.problem FROM unnest(ARRAY[
    'SELECT billing_worker.announce_trial_endings(10, ''2027-02-12Z'')',
    'SELECT billing_api.extend_trial(256, ''2027-02-20Z'', p_as_of => ''2027-02-13Z'')',
    'SELECT billing_api.cancel_subscription(256, true, p_as_of => ''2027-02-13Z'')',
    'SELECT billing_api.undo_cancel(256, p_as_of => ''2027-02-13Z'')',
    'SELECT billing_worker.renew_due(100, ''2027-02-28Z'')'
]) WITH ORDINALITY AS x (statement, no) CROSS JOIN LATERAL pg_temp.step(x.statement) AS s (problem) WHERE s.problem IS NOT NULL$$,
    'after a trial, and boundaries that bring a change');
SELECT is_empty($$SELECT s.problem FROM unnest(ARRAY[
    'SELECT billing_test.collect(''DECLINED'', ''do_not_honor'', ''2027-02-28Z'')',
    'SELECT billing_api.add_payment_method(320, ''sim'', ''tok_other'', p_make_default => false, p_as_of => ''2027-02-28Z'')',
    'SELECT billing_api.set_subscription_payment_method(320, (SELECT max(m.payment_method_id)
    FROM billing.payment_method AS m WHERE m.customer_id = 320), p_as_of => ''2027-02-28Z'')',
    'SELECT billing_test.collect(p_as_of => ''2027-03-05Z'')'
]) WITH ORDINALITY AS x (statement, no) CROSS JOIN LATERAL pg_temp.step(x.statement) AS s (problem) WHERE s.problem IS NOT NULL$$,
    'after declines and recoveries');
SELECT is_empty($$SELECT s.problem FROM unnest(ARRAY[
    'SELECT billing_worker.renew_due(100, ''2027-03-31Z'')',
    'SELECT billing_test.collect(p_as_of => ''2027-03-31Z'')',
    'SELECT billing_worker.renew_due(100, ''2027-03-31Z'')',
    'SELECT billing_test.collect(p_as_of => ''2027-03-31Z'')',
    'SELECT billing_worker.renew_due(100, ''2027-03-31Z'')',
    'SELECT billing_test.collect(p_as_of => ''2027-03-31Z'')',
    'SELECT billing_worker.renew_due(100, ''2027-03-31Z'')',
    'SELECT billing_test.collect(p_as_of => ''2027-03-31Z'')'
]) WITH ORDINALITY AS x (statement, no) CROSS JOIN LATERAL pg_temp.step(x.statement) AS s (problem) WHERE s.problem IS NOT NULL$$,
    'after catching up');
SELECT is_empty($$SELECT s.problem FROM unnest(ARRAY[
    'SELECT billing_api.pause_subscription(320, p_as_of => ''2027-03-31Z'')',
    'SELECT billing_api.resume_subscription(320, p_as_of => ''2027-03-31Z'')',
    'SELECT billing_api.pause_subscription(320, p_as_of => ''2027-04-10Z'')',
    'SELECT billing_api.resume_subscription(320, p_as_of => ''2027-04-20Z'')',
    'SELECT billing_api.pause_subscription(320, true, p_as_of => ''2027-04-20Z'')',
    'SELECT billing_worker.renew_due(100, ''2027-05-21Z'')',
    'SELECT billing_api.resume_subscription(320, p_as_of => ''2027-05-25Z'')'
]) WITH ORDINALITY AS x (statement, no) CROSS JOIN LATERAL pg_temp.step(x.statement) AS s (problem) WHERE s.problem IS NOT NULL$$,
    'after pauses');
SELECT is_empty($$SELECT s.problem FROM unnest(ARRAY[
    'SELECT billing_api.add_price(''FREE'', 500, ''USD'', ''2027-06-01Z'', p_as_of => ''2027-05-25Z'')',
    'SELECT billing_api.migrate_price(''FREE'', ''2027-06-01Z'', 0, false, p_as_of => ''2027-05-25Z'')',
    'SELECT billing_worker.renew_due(100, ''2027-06-30Z'')',
    'SELECT billing_worker.renew_due(100, ''2027-06-30Z'')',
    'SELECT billing.park_subscription(ROW(448, 448)::billing.subscription_key, ''22003'', ''odd'', ''2027-06-30Z'')',
    'SELECT billing_ops.unpark(448, ''2027-06-30Z'')',
    'SELECT billing_test.collect(p_as_of => ''2027-06-30Z'')',
    'SELECT billing_api.renew_now(320, p_as_of => ''2027-06-30Z'')'
]) WITH ORDINALITY AS x (statement, no) CROSS JOIN LATERAL pg_temp.step(x.statement) AS s (problem) WHERE s.problem IS NOT NULL$$,
    'after a migration of prices, a parked renewal and an early one');
SELECT billing_api.cancel_subscription(s.subscription_id, p_as_of => '2027-06-30Z')
FROM billing.subscription AS s WHERE s.ended_at IS NULL;
SELECT is_empty('SELECT * FROM pg_temp.unexplained()', 'after every end');

SELECT isnt_empty(
    $$SELECT e.event_type FROM billing.subscription_event AS e WHERE e.row_changes <> '{}'$$, 'each entry says which columns it set'
);
SELECT is_empty(
    $$SELECT o.event_type FROM billing.outbox_event AS o WHERE o.payload ? 'row'$$, 'which the world is not told'
);
SELECT * FROM finish();
ROLLBACK;
