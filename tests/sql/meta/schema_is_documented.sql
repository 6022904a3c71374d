-- \d+ in psql is the manual.
BEGIN;
SELECT plan(5);

CREATE TEMPORARY VIEW our_schema AS
SELECT oid, nspname FROM pg_namespace
WHERE nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops');

-- Partitions say what their parent says.
CREATE TEMPORARY VIEW our_relation AS
SELECT c.oid, c.oid::regclass::text AS name, c.relkind
FROM pg_class AS c
INNER JOIN our_schema AS n ON c.relnamespace = n.oid
WHERE c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition;

SELECT is((SELECT count(*) FROM our_schema), 4::bigint, 'the engine has its four schemas');

SELECT is_empty($$
    SELECT nspname FROM our_schema WHERE obj_description(oid, 'pg_namespace') IS NULL
$$, 'every schema has a comment');

SELECT is_empty($$
    SELECT name FROM our_relation WHERE obj_description(oid, 'pg_class') IS NULL
$$, 'every table and view has a comment');

SELECT is_empty($$
    SELECT r.name, a.attname
    FROM our_relation AS r
    INNER JOIN pg_attribute AS a ON a.attrelid = r.oid
    WHERE r.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
      AND col_description(r.oid, a.attnum) IS NULL
$$, 'every column of a table has a comment');

SELECT is_empty($$
    SELECT t.oid::regtype
    FROM pg_type AS t
    INNER JOIN our_schema AS n ON t.typnamespace = n.oid
    LEFT JOIN pg_class AS c ON t.typrelid = c.oid
    WHERE t.typelem = 0 AND (c.oid IS NULL OR c.relkind = 'c') AND obj_description(t.oid, 'pg_type') IS NULL
      AND t.typtype <> 'm'
$$, 'every type has a comment');

SELECT * FROM finish();
ROLLBACK;
