CREATE OR REPLACE FUNCTION billing.outcome_rank(
    p_status text
)
RETURNS integer
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN array_position(
    ARRAY['STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING', 'DECLINED', 'SUCCEEDED'], p_status
);

COMMENT ON FUNCTION billing.outcome_rank IS
'Rank of an attempt status: a report of a lower rank than what is known changes nothing. NULL for ABANDONED.';
