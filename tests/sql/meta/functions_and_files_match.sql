-- The directory is the architecture: one function, one file, called alike.
BEGIN;
SELECT plan(6);

CREATE TEMPORARY VIEW our_object AS
SELECT n.nspname || '.' || f.proname AS name
FROM pg_proc AS f
INNER JOIN pg_namespace AS n ON f.pronamespace = n.oid
WHERE n.nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops')
UNION ALL
SELECT n.nspname || '.' || c.relname
FROM pg_class AS c
INNER JOIN pg_namespace AS n ON c.relnamespace = n.oid
WHERE n.nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops') AND c.relkind IN ('v', 'm');

CREATE TEMPORARY VIEW file AS
SELECT
    f.path,
    substring(f.path FROM '^db/([a-z]+)/') AS directory,
    substring(f.path FROM '([^/]+)\.sql$') AS name,
    f.content,
    f.creates
FROM billing_test.sql_file AS f;

SELECT is_empty($$
    SELECT name FROM our_object
    EXCEPT
    SELECT unnest(creates) FROM file
$$, 'every function and view of the database has a file');

SELECT is_empty($$
    SELECT path, unnest(creates) AS name FROM file WHERE directory IN ('functions', 'views')
    EXCEPT
    SELECT f.path, o.name FROM file AS f INNER JOIN our_object AS o ON o.name = ANY (f.creates)
$$, 'every function and view of a file is in the database');

SELECT is_empty($$
    SELECT path, creates FROM file
    WHERE directory = 'functions' AND (cardinality(creates) <> 1 OR split_part(creates[1], '.', 2) <> name)
$$, 'every file below db/functions creates one function, and is called like it');

SELECT is_empty($$
    SELECT path, creates FROM file WHERE directory = 'views' AND cardinality(creates) <> 1
$$, 'every file in db/views creates one view');

SELECT is_empty($$
    SELECT name, array_agg(path) FROM (SELECT path, unnest(creates) AS name FROM file) AS each_name
    GROUP BY name HAVING count(DISTINCT path) > 1
$$, 'nothing is created by two files');

SELECT is_empty($$
    SELECT path FROM file
    WHERE directory IN ('functions', 'views')
      AND content !~ ('(?i)COMMENT\s+ON\s+(FUNCTION|PROCEDURE|VIEW|MATERIALIZED VIEW)\s+' || creates[1] || '\s+IS')
$$, 'every file comments on what it creates, without an argument list, which finds a leftover overload');

SELECT * FROM finish();
ROLLBACK;
