CREATE OR REPLACE FUNCTION billing.require_shard(
    p_shard integer,
    p_shards integer
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 unless 0 <= p_shard < p_shards <= 1024
-- Idempotent: yes
BEGIN
    IF (p_shards BETWEEN 1 AND 1024 AND p_shard BETWEEN 0 AND p_shards - 1) IS NOT TRUE THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('shard %s of %s does not exist', p_shard, p_shards),
            HINT = 'p_shards is 1 to 1024, p_shard 0 to p_shards - 1.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_shard IS 'Refuses a share of the work that does not exist, with SB101.';
