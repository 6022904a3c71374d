CREATE OR REPLACE FUNCTION billing.jump_sequences()
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     every sequence of schema billing
-- Raises:     nothing
-- Idempotent: no
-- Ten million ids, at the step of each sequence: more than a lost database can have handed out since its last backup.
DECLARE
    c_ids CONSTANT bigint := 10000000;
    v_sequence record;
BEGIN
    FOR v_sequence IN
        SELECT format('%I.%I', q.schemaname, q.sequencename) AS name, q.increment_by
        FROM pg_catalog.pg_sequences AS q
        WHERE q.schemaname = 'billing' AND q.data_type = 'bigint'::regtype
        ORDER BY q.sequencename
    LOOP
        PERFORM setval(v_sequence.name, nextval(v_sequence.name) + c_ids * v_sequence.increment_by);
    END LOOP;
END;
$function$;

COMMENT ON FUNCTION billing.jump_sequences IS
'Moves every sequence of ids beyond what a database that was lost may have used.';
