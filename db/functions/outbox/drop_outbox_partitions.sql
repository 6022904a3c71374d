CREATE OR REPLACE FUNCTION billing_worker.drop_outbox_partitions(
    p_keep_days integer
)
RETURNS integer
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = ''
SET lock_timeout = '200ms'
AS $function$
-- Locks:      outbox_event, ACCESS EXCLUSIVE: every insert waits, hence the short time-out
-- Writes:     drops partitions
-- Raises:     SB101 invalid argument; 55P03 the lock was not to be had, call again
-- Idempotent: yes
DECLARE
    -- created_at is the wall clock's.
    c_today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    v_name text;
    v_all_published boolean;
    v_dropped integer := 0;
BEGIN
    PERFORM billing.require_integer(p_keep_days, 'p_keep_days', 1, 3660);

    -- DDL goes partition by partition.
    FOR v_name IN
        SELECT c.relname::text
        FROM pg_catalog.pg_inherits AS i
        INNER JOIN pg_catalog.pg_class AS c ON i.inhrelid = c.oid
        WHERE i.inhparent = 'billing.outbox_event'::regclass
          AND c.relname ~ '^outbox_event_[0-9]{8}$'
          AND to_date(right(c.relname, 8), 'YYYYMMDD') < c_today - p_keep_days
        ORDER BY c.relname
    LOOP
        EXECUTE format('SELECT NOT EXISTS (SELECT FROM billing.%I WHERE published_at IS NULL)', v_name)
        INTO v_all_published;
        CONTINUE WHEN NOT v_all_published;
        EXECUTE format('DROP TABLE billing.%I', v_name);
        v_dropped := v_dropped + 1;
    END LOOP;

    RETURN v_dropped;
END;
$function$;

COMMENT ON FUNCTION billing_worker.drop_outbox_partitions IS
'Drops the days of the outbox that ended more than so many days ago and are published to the last event; returns how many. A day with an unpublished or blocked event stays.';
