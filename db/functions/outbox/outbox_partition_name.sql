CREATE OR REPLACE FUNCTION billing.outbox_partition_name(
    p_day date
)
RETURNS text
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN 'outbox_event_' || to_char(p_day, 'YYYYMMDD');

COMMENT ON FUNCTION billing.outbox_partition_name IS 'Name of the partition of billing.outbox_event for a day.';
