-- What the tables promise, and that the promises have names to match on.
BEGIN;
SELECT plan(7);

CREATE TEMPORARY VIEW our_table AS
SELECT c.oid, c.oid::regclass::text AS name, c.relispartition, c.relpersistence, c.relname
FROM pg_class AS c
INNER JOIN pg_namespace AS n ON c.relnamespace = n.oid
WHERE n.nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops') AND c.relkind IN ('r', 'p');

CREATE TEMPORARY VIEW our_constraint AS
SELECT t.name AS table_name, t.relname, k.*
FROM pg_constraint AS k
INNER JOIN our_table AS t ON k.conrelid = t.oid
-- NOT NULL has rows here since PostgreSQL 18, and a partition has its parent's constraints.
WHERE k.contype <> 'n' AND k.conparentid = 0 AND k.coninhcount = 0;

SELECT is_empty($$
    SELECT name FROM our_table AS t
    WHERE NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = t.oid AND k.contype = 'p')
$$, 'every table has a primary key');

-- A key that a customer leads is served by any index that he leads as well. Elsewhere the index must hold the whole
-- key; it may leave out rows in which a column of the key is NULL, because these reference nothing. Nobody looks for the
-- children of a parent that can neither be deleted nor renumbered.
CREATE TEMPORARY VIEW needs_an_index AS
SELECT k.*
FROM our_constraint AS k
WHERE k.contype = 'f'
  AND NOT EXISTS (
      SELECT
      FROM pg_trigger AS t
      INNER JOIN pg_proc AS f ON t.tgfoid = f.oid
      -- Bits of tgtype: 1 for each row, 2 before, 8 delete.
      WHERE t.tgrelid = k.confrelid AND f.proname = 'refuse_change' AND t.tgtype::integer & 11 = 11
  );

SELECT is_empty($$
    SELECT k.table_name, k.conname
    FROM needs_an_index AS k
    WHERE NOT EXISTS (
        SELECT
        FROM pg_index AS i
        INNER JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
        WHERE i.indrelid = k.conrelid AND i.indisvalid AND i.indkey[0] = ANY (k.conkey)
          AND (
              (i.indpred IS NULL AND i.indkey[0] = k.conkey[1] AND a.attname = 'customer_id')
              OR (
                  (i.indkey::smallint[])[0:cardinality(k.conkey) - 1] @> k.conkey
                  AND (
                      i.indpred IS NULL
                      OR pg_get_expr(i.indpred, i.indrelid) IN (
                          SELECT format('(%I IS NOT NULL)', b.attname)
                          FROM pg_attribute AS b
                          WHERE b.attrelid = k.conrelid AND b.attnum = ANY (k.conkey)
                      )
                  )
              )
          )
    )
$$, 'every foreign key whose parent can go has an index');

SELECT is_empty($$
    SELECT table_name, conname FROM our_constraint
    WHERE conname !~ '^[a-z][a-z0-9_]*$'
       OR (contype <> 'p' AND conname ~ '_(check|fkey|key|excl|not_null)[0-9]*$')
       OR (contype = 'p' AND conname ~ '_pkey[0-9]*$' AND conname <> relname || '_pkey')
$$, 'every constraint is named after what it enforces, in lower case, and a primary key after its table');

SELECT is_empty($$
    SELECT conname, array_agg(table_name) FROM our_constraint GROUP BY conname HAVING count(*) > 1
$$, 'no two constraints have the same name');

SELECT is_empty($$
    SELECT table_name, conname FROM our_constraint WHERE condeferrable OR NOT convalidated
$$, 'no constraint is deferrable or only half believed');

SELECT is_empty($$
    SELECT name FROM our_table WHERE relpersistence <> 'p'
$$, 'every table survives a crash');

-- The one time without a zone is the local anchor, from which boundaries are counted.
SELECT is_empty($$
    SELECT t.name, a.attname, format_type(a.atttypid, a.atttypmod)
    FROM our_table AS t
    INNER JOIN pg_attribute AS a ON a.attrelid = t.oid
    WHERE a.attnum > 0 AND NOT a.attisdropped
      AND a.atttypid IN (
          'real'::regtype, 'double precision'::regtype, 'money'::regtype, 'char'::regtype, 'bpchar'::regtype,
          'varchar'::regtype, 'json'::regtype, 'timetz'::regtype, 'timestamp'::regtype
      )
      AND NOT (a.attname = 'anchor_at' AND a.atttypid = 'timestamp'::regtype)
$$, 'no column has a type that loses money, time or text');

SELECT * FROM finish();
ROLLBACK;
