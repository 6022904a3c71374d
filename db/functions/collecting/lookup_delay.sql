CREATE OR REPLACE FUNCTION billing.lookup_delay(
    p_lookup_count integer
)
RETURNS interval
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN CASE p_lookup_count
    WHEN 0 THEN interval '30 seconds'
    WHEN 1 THEN interval '2 minutes'
    ELSE interval '15 minutes'
END;

COMMENT ON FUNCTION billing.lookup_delay IS 'How long to wait before look-up n + 1: 30 seconds, 2 minutes, then 15 minutes each.';
