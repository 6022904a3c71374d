CREATE OR REPLACE FUNCTION billing.require_limit(
    p_limit integer
)
RETURNS integer
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
RETURN billing.require_integer(p_limit, 'p_limit', 1, 10000);

COMMENT ON FUNCTION billing.require_limit IS
'Size of a batch, 1 to 10000, or SB101. NULL is refused, since LIMIT NULL means no limit.';
