CREATE OR REPLACE FUNCTION billing_ops.set_shard(
    p_shard integer
)
RETURNS SETOF billing.database_identity
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      database_identity; every sequence of ids, ACCESS EXCLUSIVE
-- Writes:     database_identity; restarts the sequences
-- Raises:     SB101 not 0 to 63, SB371 there are customers or plans
-- Idempotent: yes
-- Ids step by 64 from the number of the shard, so that no two shards ever give the same one. What the migrations gave
-- themselves (dunning policies) keeps its ids: such rows are no shard's business.
DECLARE
    v_sequence record;
BEGIN
    PERFORM billing.require_integer(p_shard, 'p_shard', 0, 63);
    PERFORM 1 FROM billing.database_identity AS d FOR UPDATE;
    IF EXISTS (SELECT 1 FROM billing.customer) OR EXISTS (SELECT 1 FROM billing.plan) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB371',
            MESSAGE = 'a database that is in use cannot become another shard',
            HINT = 'Ids that were given name the shard that gave them. Take a new database.';
    END IF;

    -- DDL goes sequence by sequence. A regclass comes out quoted; a bigint has no quoted form in DDL.
    FOR v_sequence IN
        SELECT format('billing.%I', q.sequencename)::regclass AS sequence, (coalesce(q.last_value, 0) / 64 + 1) * 64 + p_shard AS next_value
        FROM pg_catalog.pg_sequences AS q
        WHERE q.schemaname = 'billing' AND q.increment_by = 64
        ORDER BY q.sequencename
    LOOP
        EXECUTE format('ALTER SEQUENCE %1$s START WITH %2$s RESTART', v_sequence.sequence, v_sequence.next_value);
    END LOOP;
    RETURN QUERY UPDATE billing.database_identity AS d SET shard = p_shard::smallint RETURNING d.*;
END;
$function$;

COMMENT ON FUNCTION billing_ops.set_shard IS
'Makes a new database, before its first customer and plan, shard p_shard (0 to 63) of several: all its ids leave that remainder when divided by 64.';
