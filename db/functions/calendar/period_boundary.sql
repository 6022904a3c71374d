CREATE OR REPLACE FUNCTION billing.period_boundary(
    p_anchor_at timestamp without time zone,
    p_time_zone text,
    p_period_length interval,
    p_period_no integer
)
RETURNS timestamptz
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN (p_anchor_at + p_period_length * p_period_no) AT TIME ZONE p_time_zone;

COMMENT ON FUNCTION billing.period_boundary IS
'Boundary k: local anchor plus k periods, then the time zone. Clamped to the end of the month, never computed from the boundary before, so it cannot drift. Without SET, so that it is inlined; the time zone of the session does not matter.';
