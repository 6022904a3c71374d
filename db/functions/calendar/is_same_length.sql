CREATE OR REPLACE FUNCTION billing.is_same_length(
    p_length interval,
    p_other interval
)
RETURNS boolean
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN p_length::text = p_other::text;

COMMENT ON FUNCTION billing.is_same_length IS
'True for two calendar lengths that are one: 12 months and a year. The operator = takes a month for 30 days.';
