CREATE OR REPLACE FUNCTION billing.to_rfc3339(
    p_at timestamptz
)
RETURNS text
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN to_char(p_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');

COMMENT ON FUNCTION billing.to_rfc3339 IS 'An instant as text in UTC, whole seconds: 2027-01-31T10:30:00Z. Infinity gives NULL.';
