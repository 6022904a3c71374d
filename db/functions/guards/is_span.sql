CREATE OR REPLACE FUNCTION billing.is_span(
    p_value interval,
    p_least interval,
    p_most interval
)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN coalesce(
    p_value BETWEEN p_least AND p_most AND extract(year FROM p_value) = 0 AND extract(month FROM p_value) = 0, false
);

COMMENT ON FUNCTION billing.is_span IS
'True for a span within its range and without months, whose length depends on the calendar; false for NULL.';
