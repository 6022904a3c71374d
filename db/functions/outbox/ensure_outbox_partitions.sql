CREATE OR REPLACE FUNCTION billing_worker.ensure_outbox_partitions(
    p_days integer
)
RETURNS integer
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
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
    v_missing date[];
    v_day date;
BEGIN
    PERFORM billing.require_integer(p_days, 'p_days', 0, 366);

    LOCK TABLE billing.outbox_event IN SHARE UPDATE EXCLUSIVE MODE;

    v_missing := ARRAY(
        SELECT d.day
        FROM (
            SELECT c_today + n.no FROM generate_series(0, p_days) AS n (no)
            UNION
            SELECT (o.created_at AT TIME ZONE 'UTC')::date FROM billing.outbox_event_default AS o
        ) AS d (day)
        WHERE to_regclass('billing.' || billing.outbox_partition_name(d.day)) IS NULL
        ORDER BY d.day
    );

    -- DDL goes day by day.
    FOREACH v_day IN ARRAY v_missing LOOP
        PERFORM billing.create_outbox_partition(v_day);
    END LOOP;

    RETURN cardinality(v_missing);
END;
$function$;

COMMENT ON FUNCTION billing_worker.ensure_outbox_partitions IS
'Makes the partitions of the outbox for today, so many days ahead, and the days of which events stand in the default partition; returns how many it made.';
