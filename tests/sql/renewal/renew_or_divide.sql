-- Data errors park one row; every other error is the caller's, and the batch stays as it was.
BEGIN;
SELECT plan(14);

SELECT billing_test.clock('2028-01-01T00:00:00Z');
SELECT billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
SELECT billing_test.subscription(billing_test.customer('customer ' || n), p_as_of => '2027-04-01T00:00:00Z')
FROM generate_series(1, 20) AS n;
SELECT billing_test.collect(p_as_of => '2027-04-01T00:00:00Z');

SELECT set_config('test.victim', s.subscription_id::text, true) FROM billing.subscription AS s
ORDER BY s.subscription_id LIMIT 1 OFFSET 9;
-- What a lock, a disk or a bug of ours would raise while one of twenty is renewed.
CREATE FUNCTION pg_temp.fail()
RETURNS trigger
LANGUAGE plpgsql
AS $function$
BEGIN
    IF new.kind = 'RENEWAL' AND new.subscription_id = current_setting('test.victim')::bigint THEN
        RAISE EXCEPTION USING ERRCODE = current_setting('test.sqlstate'), MESSAGE = 'made up';
    END IF;
    RETURN new;
END;
$function$;
CREATE TRIGGER fail BEFORE INSERT ON billing.invoice FOR EACH ROW EXECUTE FUNCTION pg_temp.fail();

CREATE FUNCTION pg_temp.renew_with(p_sqlstate text)
RETURNS text
LANGUAGE plpgsql
AS $function$
DECLARE
    v_outcome text;
BEGIN
    PERFORM set_config('test.sqlstate', p_sqlstate, true);
    BEGIN
        PERFORM billing_worker.renew_due(100, '2027-05-01T00:00:00Z');
        SELECT format('%s renewed, %s parked', count(*), (SELECT count(*) FROM billing.subscription AS s WHERE s.parked_at IS NOT NULL))
        INTO v_outcome FROM billing.invoice AS i WHERE i.kind = 'RENEWAL';
        RAISE EXCEPTION USING ERRCODE = 'TT000', MESSAGE = v_outcome;
    EXCEPTION WHEN OTHERS THEN
        RETURN CASE sqlstate WHEN 'TT000' THEN sqlerrm ELSE sqlstate END;
    END;
END;
$function$;

SELECT is(pg_temp.renew_with('22012'), '19 renewed, 1 parked', 'class 22, data: the row is parked');
SELECT is(pg_temp.renew_with('23514'), '19 renewed, 1 parked', 'class 23, a constraint: the row is parked');
SELECT is(pg_temp.renew_with('SB901'), '19 renewed, 1 parked', 'SB9, a broken invariant: the row is parked');
SELECT is(pg_temp.renew_with('40001'), '40001', 'a serialization failure is raised to the caller, who tries the batch again');
SELECT is(pg_temp.renew_with('40P01'), '40P01', 'so is a deadlock');
SELECT is(pg_temp.renew_with('55P03'), '55P03', 'a lock that was not to be had');
SELECT is(pg_temp.renew_with('53100'), '53100', 'a full disk');
SELECT is(pg_temp.renew_with('08006'), '08006', 'a lost connection');
SELECT is(pg_temp.renew_with('XX000'), 'XX000', 'a fault of the server');
SELECT is(pg_temp.renew_with('SB303'), 'SB303', 'and a transition that the engine does not know, which is a fault of ours');
SELECT is((SELECT count(*) FROM billing.invoice AS i WHERE i.kind = 'RENEWAL'), 0::bigint, 'after an error nothing is left behind');

-- A number that somebody else had taken is another one the next time. Twenty are tried, then two of them, then the one.
CREATE TEMPORARY SEQUENCE tries;
GRANT USAGE ON SEQUENCE tries TO PUBLIC;
CREATE OR REPLACE FUNCTION pg_temp.fail()
RETURNS trigger
LANGUAGE plpgsql
AS $function$
BEGIN
    IF new.kind = 'RENEWAL' AND new.subscription_id = current_setting('test.victim')::bigint
        AND nextval('tries') <= current_setting('test.failures')::integer
    THEN
        RAISE EXCEPTION USING ERRCODE = current_setting('test.sqlstate'), MESSAGE = 'made up';
    END IF;
    RETURN new;
END;
$function$;
SELECT set_config('test.failures', '3', true);
SELECT is(pg_temp.renew_with('23505'), '20 renewed, 0 parked', 'a unique violation of one row alone is tried once more');
SELECT setval('tries', 1, false), set_config('test.failures', '4', true);
SELECT is(pg_temp.renew_with('23505'), '19 renewed, 1 parked', 'and the row is parked where it fails again');

-- The whole batch is poisoned.
DROP TRIGGER fail ON billing.invoice;
CREATE FUNCTION pg_temp.fail_always()
RETURNS trigger
LANGUAGE plpgsql
AS $function$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '22012', MESSAGE = 'made up';
END;
$function$;
CREATE TRIGGER fail_always BEFORE INSERT ON billing.invoice FOR EACH ROW EXECUTE FUNCTION pg_temp.fail_always();
SELECT billing_worker.renew_due(100, '2027-05-01T00:00:00Z');
SELECT is(
    (SELECT count(*) FROM billing.subscription AS s WHERE s.parked_at IS NOT NULL AND s.park_reason = '22012 made up'), 20::bigint,
    'where every row is poisoned, every row is parked'
);

SELECT * FROM finish();
ROLLBACK;
