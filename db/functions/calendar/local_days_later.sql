CREATE OR REPLACE FUNCTION billing.local_days_later(
    p_at timestamptz,
    p_days integer,
    p_time_zone text
)
RETURNS timestamptz
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN ((p_at AT TIME ZONE p_time_zone) + make_interval(days => p_days)) AT TIME ZONE p_time_zone;

COMMENT ON FUNCTION billing.local_days_later IS 'The same local time some days later, in a time zone. Ends trials.';
