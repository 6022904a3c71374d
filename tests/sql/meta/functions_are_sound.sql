-- Every function, procedure and trigger function of the engine, by what the catalogue and its own text say of it.
BEGIN;
SELECT plan(14);

CREATE TEMPORARY VIEW our_function AS
SELECT
    f.oid,
    n.nspname || '.' || f.proname AS name,
    f.oid::regprocedure::text AS signature,
    n.nspname AS schema_name,
    f.proname,
    f.prosrc,
    f.proconfig,
    f.prosqlbody IS NOT NULL AS is_bound,
    f.prosecdef,
    f.proargmodes,
    f.proargnames,
    l.lanname AS language,
    pg_get_userbyid(f.proowner) AS owner
FROM pg_proc AS f
INNER JOIN pg_namespace AS n ON f.pronamespace = n.oid
INNER JOIN pg_language AS l ON f.prolang = l.oid
WHERE n.nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops');

SELECT isnt_empty($$
    SELECT name FROM our_function
$$, 'there are functions to look at');

SELECT is_empty($$
    SELECT name, count(*) FROM our_function GROUP BY name HAVING count(*) > 1
$$, 'no function is overloaded');

SELECT is_empty($$
    SELECT signature, language FROM our_function WHERE language NOT IN ('sql', 'plpgsql')
$$, 'every function is written in SQL or PL/pgSQL, which every managed service has');

-- A body of the form RETURN expr is bound when it is created, and a SET would stop it from being inlined.
SELECT is_empty($$
    SELECT f.signature, f.proconfig
    FROM our_function AS f
    LEFT JOIN (VALUES
        ('billing.usable_method', 'returns rows and is inlined, into callers that pin')
    ) AS allowed (name, reason) USING (name)
    WHERE NOT f.is_bound AND NOT coalesce('search_path=""' = ANY (f.proconfig), false) AND allowed.name IS NULL
$$, 'every function that is not bound at creation pins an empty search_path');

SELECT is_empty($$
    SELECT signature FROM our_function WHERE obj_description(oid, 'pg_proc') IS NULL
$$, 'every function has a comment');

SELECT is_empty($$
    SELECT signature FROM our_function WHERE has_function_privilege('public', oid, 'execute')
$$, 'PUBLIC may execute nothing');

SELECT is_empty($$
    SELECT signature, owner FROM our_function WHERE owner <> 'billing_owner'
$$, 'every function belongs to billing_owner');

SELECT is_empty($$
    SELECT f.signature
    FROM our_function AS f
    LEFT JOIN (VALUES
        ('billing.now', 'a parameter''s default runs with the caller''s rights')
    ) AS allowed (name, reason) USING (name)
    WHERE f.prosecdef AND f.schema_name = 'billing' AND allowed.name IS NULL
$$, 'SECURITY DEFINER stands on entry points only');

SELECT is_empty($$
    SELECT signature, schema_name FROM our_function
    WHERE NOT prosecdef AND schema_name IN ('billing_api', 'billing_worker')
$$, 'every entry point is SECURITY DEFINER, because its caller may touch no table');

SELECT is_empty($$
    SELECT f.signature, part.name
    FROM our_function AS f
    CROSS JOIN LATERAL unnest(ARRAY['Locks', 'Writes', 'Raises', 'Idempotent']) AS part (name)
    WHERE f.language = 'plpgsql' AND f.prosrc !~ ('^\s*(?:--[^\n]*\n\s*)*--[ ]' || part.name || ':[ ]+\S')
    ORDER BY f.signature
$$, 'every PL/pgSQL body begins with its contract: Locks, Writes, Raises, Idempotent');

-- What the body raises itself; what it calls may raise more.
SELECT is_empty($$
    SELECT f.signature, raised.code[1] AS code
    FROM our_function AS f
    CROSS JOIN LATERAL regexp_matches(f.prosrc, '\yERRCODE\s*=\s*''(SB[0-9]{3})''', 'gi') AS raised (code)
    CROSS JOIN LATERAL substring(f.prosrc FROM '--[ ]Raises:([^\n]*(?:\n\s*--[ ]{3,}[^\n]*)*)') AS promise (line)
    WHERE f.language = 'plpgsql' AND strpos(promise.line, raised.code[1]) = 0
$$, 'every SQLSTATE that a body raises stands in its contract');

SELECT is_empty($$
    SELECT signature FROM our_function WHERE language = 'plpgsql' AND 't' = ANY (proargmodes)
$$, 'no PL/pgSQL function RETURNS TABLE, whose columns would be variables in the body');

SELECT is_empty($$
    SELECT f.signature, argument.name
    FROM our_function AS f
    -- Where all are IN there are no modes.
    CROSS JOIN LATERAL unnest(f.proargnames, f.proargmodes) AS argument (name, mode)
    WHERE coalesce(argument.mode, 'i') IN ('i', 'b', 'v') AND argument.name !~ '^p_[a-z0-9_]+$'
$$, 'every parameter is called p_ and something');

SELECT is_empty($$
    SELECT f.signature
    FROM our_function AS f
    LEFT JOIN (VALUES
        ('billing.create_outbox_partition', 'its list of columns is quoted column by column')
    ) AS allowed (name, reason) USING (name)
    WHERE f.language = 'plpgsql' AND allowed.name IS NULL
      AND (
          f.prosrc ~* '\yEXECUTE\s+(?!(?:pg_catalog\.)?format\(''[^'']*''|''|\$|(?:FUNCTION|ON)\y)'
          OR f.prosrc ~* '\yEXECUTE\s+(?:pg_catalog\.)?format\([^;]*%s'
      )
$$, 'every dynamic statement is a literal, or a format() that quotes what it takes in');

SELECT * FROM finish();
ROLLBACK;
