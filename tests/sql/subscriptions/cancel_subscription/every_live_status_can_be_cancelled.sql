-- E03: status by operation.
BEGIN;
SELECT plan(9);

SELECT billing_test.clock('2027-05-10T00:00:00Z');
SELECT billing_api.create_plan(p.code, p.code, p.amount, 'USD', 'MONTH', p_trial_days => p.trial_days, p_as_of => '2027-01-01T00:00:00Z')
FROM (VALUES ('BASIC', 3000::bigint, 0), ('PRO', 9000, 0), ('TRIAL', 3000, 30)) AS p (code, amount, trial_days);
CREATE TEMPORARY TABLE scene (name text, mode boolean, customer_id bigint, subscription_id bigint);
CREATE FUNCTION pg_temp.scene(p_name text, p_mode boolean, p_plan text, p_behavior text, p_outcome text)
RETURNS void
LANGUAGE plpgsql
AS $function$
DECLARE
    v_customer_id bigint := billing_test.customer(p_name || ' ' || p_mode);
    v_subscription_id bigint := billing_test.subscription(v_customer_id, p_plan, p_payment_behavior => p_behavior,
        p_as_of => '2027-05-01T00:00:00Z');
BEGIN
    PERFORM billing_test.collect(p_outcome, 'do_not_honor', '2027-05-01T00:00:00Z') WHERE p_outcome IS NOT NULL;
    INSERT INTO scene VALUES (p_name, p_mode, v_customer_id, v_subscription_id);
END;
$function$;
SELECT pg_temp.scene(x.name, m.mode, x.plan_code, x.behavior, x.outcome)
FROM (VALUES
    ('TRIALING', 'TRIAL', 'PAY_FIRST', NULL), ('ACTIVE', 'BASIC', 'GRANT_FIRST', 'SUCCEEDED'),
        ('PAST_DUE', 'BASIC', 'GRANT_FIRST', 'DECLINED'),
    ('PAUSED', 'BASIC', 'GRANT_FIRST', 'SUCCEEDED'), ('ACTIVE with a change', 'BASIC', 'GRANT_FIRST', 'SUCCEEDED')
) AS x (name, plan_code, behavior, outcome), unnest('{f,t}'::boolean[]) AS m (mode);
SELECT pg_temp.scene('INCOMPLETE', m.mode, 'BASIC', 'PAY_FIRST', NULL) FROM unnest('{f,t}'::boolean[]) AS m (mode);
SELECT billing_api.pause_subscription(s.subscription_id, p_as_of => '2027-05-05T00:00:00Z') FROM scene AS s WHERE s.name = 'PAUSED';
SELECT billing_api.change_plan(s.subscription_id, 'PRO', p_as_of => '2027-05-05T00:00:00Z') FROM scene AS s
    WHERE s.name = 'ACTIVE with a change';

SELECT results_eq(
    $$SELECT x.name, x.mode, s.status FROM billing.subscription AS s INNER JOIN scene AS x USING (subscription_id) ORDER BY 1, 2$$,
    $$SELECT x.name, x.mode, split_part(x.name, ' ', 1) FROM scene AS x ORDER BY 1, 2$$, 'E03: two subscriptions in every live status'
);
SELECT is((SELECT count(*) FROM billing.subscription_change AS c WHERE c.status = 'PENDING'), 2::bigint,
    'E03: two of them with a change that waits for its payment');

CREATE TEMPORARY TABLE answer AS
SELECT x.name, x.mode, c.status, c.cancel_at_period_end
FROM scene AS x CROSS JOIN LATERAL billing_api.cancel_subscription(x.subscription_id, x.mode, p_as_of => '2027-05-10T00:00:00Z') AS c;
SELECT results_eq(
    'SELECT a.name, a.mode, a.status, a.cancel_at_period_end FROM answer AS a ORDER BY 1, 2',
    $$VALUES ('ACTIVE', false, 'CANCELED', false), ('ACTIVE', true, 'ACTIVE', true),
      ('ACTIVE with a change', false, 'CANCELED', false), ('ACTIVE with a change', true, 'ACTIVE', true),
      ('INCOMPLETE', false, 'CANCELED', false), ('INCOMPLETE', true, 'CANCELED', false),
      ('PAST_DUE', false, 'CANCELED', false), ('PAST_DUE', true, 'CANCELED', false),
      ('PAUSED', false, 'CANCELED', false), ('PAUSED', true, 'CANCELED', false),
      ('TRIALING', false, 'CANCELED', false), ('TRIALING', true, 'TRIALING', true)$$,
    'E03: each can be cancelled; only a trial and a paid period are lived to their end'
);
SELECT is((SELECT count(*) FROM billing.subscription_change AS c WHERE c.status = 'PENDING'), 0::bigint, 'E03: no change waits any more');
SELECT is(
    (SELECT count(*) FROM billing.invoice AS i INNER JOIN billing.subscription AS s USING (customer_id, subscription_id)
     WHERE i.status = 'OPEN' AND (s.status = 'CANCELED' OR s.cancel_at_period_end)), 0::bigint, 'E03: nothing is owed'
);
SELECT is(
    (SELECT billing_worker.renew_due(100, '2027-06-01T00:00:00Z')
     + (SELECT count(*) FROM billing_worker.start_attempts('sim', 100, 'w', '2027-06-01T00:00:00Z'))), 3::bigint,
    'E03: those that were flagged end at their boundary, and nothing is charged'
);

-- Cancelled again, each is told that it has ended, and nobody hears of it.
SELECT billing_test.clock('2027-06-01T00:00:00Z');
SELECT is(
    (SELECT array_agg(DISTINCT s.status) FROM billing.subscription AS s), '{CANCELED}', 'E03: all have ended'
);
CREATE FUNCTION pg_temp.again(p_subscription_id bigint, p_mode boolean)
RETURNS text
LANGUAGE plpgsql
AS $function$
DECLARE
    c_before CONSTANT text := billing_test.fingerprint();
BEGIN
    PERFORM billing_api.cancel_subscription(p_subscription_id, p_mode);
    RETURN 'it went through';
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate || CASE WHEN billing_test.fingerprint() = c_before THEN ', nothing changed' ELSE ', something changed' END;
END;
$function$;
-- One of them EXPIRED, as with a fixed term.
SELECT pg_temp.scene('EXPIRED', false, 'BASIC', 'GRANT_FIRST', 'SUCCEEDED');
SELECT billing.end_subscriptions(ARRAY[ROW(x.customer_id, x.subscription_id, 'EXPIRED', 'term_end', '2027-06-01Z')::billing.ending],
    '2027-06-01Z')
FROM scene AS x WHERE x.name = 'EXPIRED';
SELECT is(
    (SELECT array_agg(DISTINCT pg_temp.again(x.subscription_id, x.mode)) FROM scene AS x), '{"SB302, nothing changed"}',
    'E03: cancelled again, CANCELED and EXPIRED are refused alike, and nothing changes'
);
SELECT is_empty('SELECT * FROM billing_test.broken()', 'no promise is broken');

SELECT * FROM finish();
ROLLBACK;
