CREATE OR REPLACE FUNCTION billing.key_is_alive(
    p_attempt billing.payment_attempt,
    p_account billing.gateway_account,
    p_at timestamptz
)
RETURNS boolean
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
SET search_path = ''
SET timezone = 'UTC'
RETURN p_at < p_attempt.started_at + p_account.key_lifetime * 0.9;

COMMENT ON FUNCTION billing.key_is_alive IS
'True while less than 90 % of the life of the key has passed since the attempt was committed: only then may it be sent.';
