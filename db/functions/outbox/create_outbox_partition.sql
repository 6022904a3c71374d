CREATE OR REPLACE FUNCTION billing.create_outbox_partition(
    p_day date
)
RETURNS void
LANGUAGE plpgsql
VOLATILE
SET search_path = ''
AS $function$
-- Locks:      outbox_event, SHARE UPDATE EXCLUSIVE; outbox_event_default, ACCESS EXCLUSIVE
-- Writes:     a new partition; rows of its day that stood in outbox_event_default
-- Raises:     42P07 it exists
-- Idempotent: no
DECLARE
    c_name CONSTANT text := billing.outbox_partition_name(p_day);
    c_from CONSTANT timestamptz := p_day::timestamp AT TIME ZONE 'UTC';
    c_to CONSTANT timestamptz := (p_day + 1)::timestamp AT TIME ZONE 'UTC';
BEGIN
    -- Attached, not created as a partition: that would lock out every writer of the outbox.
    EXECUTE format('CREATE TABLE billing.%I (LIKE billing.outbox_event INCLUDING ALL)', c_name);
    EXECUTE format('COMMENT ON TABLE billing.%I IS %L', c_name, format('Events written on %s (UTC).', p_day));
    EXECUTE format(
        'CREATE TRIGGER outbox_event_is_never_truncated BEFORE TRUNCATE ON billing.%I '
        'FOR EACH STATEMENT EXECUTE FUNCTION billing.refuse_change()',
        c_name
    );

    LOCK TABLE billing.outbox_event_default IN ACCESS EXCLUSIVE MODE;
    IF EXISTS (
        SELECT FROM billing.outbox_event_default AS o WHERE o.created_at >= c_from AND o.created_at < c_to
    ) THEN
        EXECUTE format(
            'INSERT INTO billing.%I ('
            '    outbox_event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, occurred_at, created_at,'
            '    published_at, blocked_at, publish_failures, retry_at, last_error, replayed_at, replayed_by,'
            '    customer_id, payload'
            ') SELECT'
            '    outbox_event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, occurred_at, created_at,'
            '    published_at, blocked_at, publish_failures, retry_at, last_error, replayed_at, replayed_by,'
            '    customer_id, payload '
            'FROM billing.outbox_event_default WHERE created_at >= %L AND created_at < %L',
            c_name, c_from, c_to
        );
        ALTER TABLE billing.outbox_event_default DISABLE TRIGGER outbox_event_is_never_deleted;
        DELETE FROM billing.outbox_event_default AS o WHERE o.created_at >= c_from AND o.created_at < c_to;
        ALTER TABLE billing.outbox_event_default ENABLE TRIGGER outbox_event_is_never_deleted;
    END IF;

    EXECUTE format(
        'ALTER TABLE billing.outbox_event ATTACH PARTITION billing.%I FOR VALUES FROM (%L) TO (%L)', c_name, c_from, c_to
    );
END;
$function$;

COMMENT ON FUNCTION billing.create_outbox_partition IS
'Makes the partition of the outbox for one day and moves the events of that day out of the default partition.';
