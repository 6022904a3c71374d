CREATE OR REPLACE FUNCTION billing.ensure_outbox_partitions(
    p_days integer
)
RETURNS integer
LANGUAGE plpgsql
VOLATILE
SET search_path = ''
SET lock_timeout = '2s'
AS $function$
-- Locks:      outbox_event, SHARE UPDATE EXCLUSIVE, which does not stop inserts; outbox_event_default, ACCESS EXCLUSIVE,
--             while a partition is attached
-- Writes:     new partitions; rows that stood in outbox_event_default
-- Raises:     SB101 invalid argument; 55P03 a lock was not to be had, call again
-- Idempotent: yes
DECLARE
    -- created_at is the wall clock's.
    c_today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    v_day date;
    v_created integer := 0;
BEGIN
    IF p_days IS NULL OR p_days NOT BETWEEN 0 AND 366 THEN
        RAISE EXCEPTION USING ERRCODE = 'SB101', MESSAGE = 'p_days must be 0 to 366';
    END IF;

    LOCK TABLE billing.outbox_event IN SHARE UPDATE EXCLUSIVE MODE;

    -- DDL goes day by day.
    FOR v_day IN
        SELECT c_today + n.no FROM generate_series(0, p_days) AS n (no)
        UNION
        SELECT (o.created_at AT TIME ZONE 'UTC')::date FROM billing.outbox_event_default AS o
        ORDER BY 1
    LOOP
        CONTINUE WHEN to_regclass('billing.' || billing.outbox_partition_name(v_day)) IS NOT NULL;
        PERFORM billing.create_outbox_partition(v_day);
        v_created := v_created + 1;
    END LOOP;

    RETURN v_created;
END;
$function$;

COMMENT ON FUNCTION billing.ensure_outbox_partitions IS
'Makes the partitions of the outbox for today, so many days ahead, and the days of which events stand in the default partition; returns how many it made.';
