CREATE OR REPLACE FUNCTION billing.term_end(
    p_first billing.first_period,
    p_time_zone text,
    p_period_length interval,
    p_term_periods integer
)
RETURNS timestamptz
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN billing.period_boundary(
    (p_first).anchor_at, p_time_zone, p_period_length, (p_first).period_no + p_term_periods - 1
);

COMMENT ON FUNCTION billing.term_end IS
'End of a fixed term: p_term_periods billed periods from the first on, a stub of calendar billing included, a trial not. NULL without a term.';
