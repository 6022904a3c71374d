CREATE OR REPLACE FUNCTION billing.check_guards()
RETURNS SETOF billing.violation
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- Partitions of the outbox take part: a trigger of the parent is cloned to each.
BEGIN
    RETURN QUERY
    SELECT 'guards', 'BROKEN', NULL::bigint, format('trigger %s on billing.%s', t.tgname, c.relname), 'is switched off'
    FROM pg_catalog.pg_trigger AS t
    INNER JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
    WHERE c.relnamespace = 'billing'::regnamespace AND t.tgenabled NOT IN ('O', 'A')
    UNION ALL
    SELECT
        'guards', 'BROKEN', NULL::bigint, format('constraint %s on %s', k.conname, k.conrelid::regclass),
        'was never checked against the rows that are there'
    FROM pg_catalog.pg_constraint AS k
    WHERE k.connamespace = 'billing'::regnamespace AND NOT k.convalidated
    UNION ALL
    SELECT 'guards', 'BROKEN', NULL::bigint, format('index billing.%s', c.relname), 'is not valid'
    FROM pg_catalog.pg_index AS i
    INNER JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
    WHERE c.relnamespace = 'billing'::regnamespace AND NOT i.indisvalid
    UNION ALL
    SELECT
        'guards', 'BROKEN', NULL::bigint, format('sequence billing.%s', q.sequencename),
        format('gives %s, step %s, in shard %s', coalesce(q.last_value, q.start_value), q.increment_by, d.shard)
    FROM pg_catalog.pg_sequences AS q
    CROSS JOIN billing.database_identity AS d
    WHERE q.schemaname = 'billing' AND q.sequencename LIKE '%\_id\_seq' AND q.increment_by <> 1
      AND (q.increment_by <> 64 OR coalesce(q.last_value, q.start_value) % 64 <> d.shard);
END;
$function$;

COMMENT ON FUNCTION billing.check_guards IS
'A trigger is off, a constraint was added unchecked, an index is broken, or ids are not those of this shard: what keeps the promises does not.';
