-- Nobody but the owner writes a table; everybody else goes through functions.
BEGIN;
SELECT plan(7);

CREATE TEMPORARY VIEW caller AS
SELECT role FROM unnest(ARRAY[
    'billing_app', 'billing_worker', 'billing_relay', 'billing_http', 'billing_operator', 'billing_readonly', 'public'
]) AS role;

CREATE TEMPORARY VIEW our_schema AS
SELECT oid, nspname, nspowner FROM pg_namespace
WHERE nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops');

CREATE TEMPORARY VIEW our_relation AS
SELECT c.oid, c.oid::regclass::text AS name, c.relkind, c.relowner
FROM pg_class AS c
INNER JOIN our_schema AS n ON c.relnamespace = n.oid
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S');

SELECT is_empty($$
    SELECT nspname FROM our_schema WHERE nspowner <> 'billing_owner'::regrole
$$, 'every schema belongs to billing_owner');

SELECT is_empty($$
    SELECT name FROM our_relation WHERE relowner <> 'billing_owner'::regrole
$$, 'every table, view and sequence belongs to billing_owner');

SELECT is_empty($$
    SELECT t.oid::regtype
    FROM pg_type AS t
    INNER JOIN our_schema AS n ON t.typnamespace = n.oid
    WHERE t.typowner <> 'billing_owner'::regrole
$$, 'every type belongs to billing_owner');

SELECT is_empty($$
    SELECT c.role, r.name, p.privilege
    FROM our_relation AS r
    CROSS JOIN caller AS c
    CROSS JOIN unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS p (privilege)
    WHERE r.relkind <> 'S' AND has_table_privilege(c.role, r.oid, p.privilege)
$$, 'nobody but the owner may change a table, not even through a view');

SELECT is_empty($$
    SELECT c.role, r.name
    FROM our_relation AS r
    CROSS JOIN caller AS c
    WHERE r.relkind = 'S' AND has_sequence_privilege(c.role, r.oid, 'USAGE, UPDATE')
$$, 'nobody but the owner may draw from a sequence');

SELECT is_empty($$
    SELECT c.role, n.nspname
    FROM our_schema AS n
    CROSS JOIN caller AS c
    WHERE has_schema_privilege(c.role, n.oid, 'CREATE')
       OR (c.role = 'public' AND has_schema_privilege(c.role, n.oid, 'USAGE'))
$$, 'nobody but the owner may create anything, and PUBLIC sees no schema');

SELECT is_empty($$
    SELECT r.rolname FROM pg_roles AS r
    WHERE r.rolname LIKE 'billing\_%'
      AND (r.rolcanlogin OR r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolbypassrls OR r.rolreplication)
      AND r.rolname IN (SELECT role FROM caller UNION ALL SELECT 'billing_owner')
$$, 'no role of the engine logs in or has a power of its own');

SELECT * FROM finish();
ROLLBACK;
