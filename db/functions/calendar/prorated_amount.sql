CREATE OR REPLACE FUNCTION billing.prorated_amount(
    p_unit_amount bigint,
    p_quantity integer,
    p_seconds numeric,
    p_seconds_total numeric
)
RETURNS bigint
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN div(p_unit_amount::numeric * p_quantity * p_seconds, p_seconds_total)::bigint;

COMMENT ON FUNCTION billing.prorated_amount IS
'Part of a price in minor units, floored: multiplied before divided, in numeric so that nothing overflows, by div() because a quotient of numeric is rounded.';
