-- plpgsql_check is an extension that few servers have; Debian's package postgresql-15-plpgsql-check is one. It reads
-- the bodies that no other linter sees.
BEGIN;
SELECT plan(2);

CREATE FUNCTION pg_temp.findings()
RETURNS TABLE (function regprocedure, line integer, level text, code text, message text)
LANGUAGE plpgsql
AS $function$
BEGIN
    CREATE EXTENSION IF NOT EXISTS plpgsql_check WITH SCHEMA tap;
    -- Each trigger function is checked with every table that it guards. Its advice on performance is left out: it would
    -- have a function STABLE that locks rows, and a cast wherever a NULL becomes typed.
    RETURN QUERY EXECUTE $query$
        SELECT f.oid::regprocedure, c.lineno, c.level, c.sqlstate, c.message
        FROM pg_proc AS f
        INNER JOIN pg_namespace AS n ON f.pronamespace = n.oid
        INNER JOIN pg_language AS l ON f.prolang = l.oid
        LEFT JOIN pg_trigger AS t ON t.tgfoid = f.oid AND t.tgparentid = 0
        CROSS JOIN LATERAL plpgsql_check_function_tb(
            f.oid, coalesce(t.tgrelid, 0), fatal_errors => false, extra_warnings => true,
            security_warnings => true, performance_warnings => false,
            newtable => t.tgnewtable, oldtable => t.tgoldtable
        ) AS c
        WHERE l.lanname = 'plpgsql' AND n.nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops')
          AND (f.prorettype <> 'trigger'::regtype OR t.oid IS NOT NULL)
    $query$;
END;
$function$;

SELECT CASE
    WHEN EXISTS (SELECT FROM pg_available_extensions WHERE name = 'plpgsql_check')
    THEN is_empty('SELECT * FROM pg_temp.findings()', 'plpgsql_check finds nothing')
    ELSE skip('this server has no plpgsql_check; BILLING_TEST_POSTGRES=debian15 has')
END;

SELECT is_empty($$
    SELECT f.oid::regprocedure
    FROM pg_proc AS f
    INNER JOIN pg_namespace AS n ON f.pronamespace = n.oid
    WHERE n.nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops')
      AND f.prorettype = 'trigger'::regtype
      AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgfoid = f.oid)
$$, 'every trigger function guards a table');

SELECT * FROM finish();
ROLLBACK;
