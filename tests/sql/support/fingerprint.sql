CREATE FUNCTION billing_test.fingerprint()
RETURNS text
LANGUAGE plpgsql
AS $function$
-- Of every row of every table of the engine, so that a test can show that nothing was changed.
DECLARE
    v_table record;
    v_hash text;
    v_hashes text := '';
BEGIN
    FOR v_table IN
        SELECT c.oid::regclass AS name
        FROM pg_class AS c
        WHERE c.relnamespace = 'billing'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        ORDER BY c.relname
    LOOP
        EXECUTE format('SELECT md5(string_agg(t::text, %L ORDER BY t::text)) FROM %s AS t', E'\n', v_table.name)
        INTO v_hash;
        v_hashes := v_hashes || format('%s %s%s', v_table.name, v_hash, E'\n');
    END LOOP;
    RETURN v_hashes;
END;
$function$;

COMMENT ON FUNCTION billing_test.fingerprint IS 'One line per table of the engine with a hash of its rows.';
