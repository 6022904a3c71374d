-- A new function that nobody may call, or a new table that nobody may read, is an oversight.
BEGIN;
SELECT plan(4);

CREATE TEMPORARY VIEW our_function AS
SELECT f.oid, n.nspname, n.nspname || '.' || f.proname AS name
FROM pg_proc AS f
INNER JOIN pg_namespace AS n ON f.pronamespace = n.oid
WHERE n.nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops');

SELECT is_empty($$
    SELECT f.name FROM our_function AS f
    WHERE f.nspname = 'billing_api'
      AND NOT (has_function_privilege('billing_app', f.oid, 'execute') AND has_function_privilege('billing_operator', f.oid, 'execute'))
$$, 'an internal system and an operator may call all of billing_api');

SELECT is_empty($$
    SELECT f.name FROM our_function AS f
    WHERE f.nspname = 'billing_worker'
      AND NOT (has_function_privilege('billing_worker', f.oid, 'execute') OR has_function_privilege('billing_relay', f.oid, 'execute')
              OR has_function_privilege('billing_http', f.oid, 'execute'))
$$, 'a worker, a relay or the HTTP door may call each function of billing_worker');

SELECT is_empty($$
    SELECT f.name FROM our_function AS f
    WHERE f.nspname = 'billing_ops' AND NOT has_function_privilege('billing_operator', f.oid, 'execute')
$$, 'an operator may call all of billing_ops');

SELECT is_empty($$
    SELECT r.role, c.oid::regclass
    FROM pg_class AS c
    INNER JOIN pg_namespace AS n ON c.relnamespace = n.oid
    CROSS JOIN (VALUES
        ('billing_app', 'billing_api'), ('billing_operator', 'billing_api'), ('billing_operator', 'billing_ops'),
        ('billing_readonly', 'billing_api'), ('billing_readonly', 'billing_ops'), ('billing_readonly', 'billing')
    ) AS r (role, schema)
    WHERE n.nspname = r.schema AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
      AND NOT has_table_privilege(r.role, c.oid, 'SELECT')
      AND (r.role, c.oid::regclass::text) NOT IN (
          ('billing_readonly', 'billing.customer_contact'), ('billing_readonly', 'billing.payment_method'),
          ('billing_readonly', 'billing.payment_attempt'), ('billing_readonly', 'billing.webhook_event'),
          ('billing_readonly', 'billing.api_key')
      )
$$, 'every view is seen by those it is for, and every table by a reader, except what is personal or secret');

SELECT * FROM finish();
ROLLBACK;
