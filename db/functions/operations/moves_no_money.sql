CREATE OR REPLACE FUNCTION billing.moves_no_money(
    p_account billing.gateway_account
)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
RETURN p_account.collecting_paused_at IS NOT NULL OR billing.is_stopped('COLLECTING') OR billing.is_off(p_account);

COMMENT ON FUNCTION billing.moves_no_money IS
'True while nothing may be charged or refunded through a gateway account: an operator has stopped it, or this database is a copy and nobody has said of what kind.';
