CREATE OR REPLACE FUNCTION billing.gateway_key(
    p_invoice_id bigint,
    p_attempt_no integer
)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
RETURN format(
    '%s-inv-%s-try-%s', (SELECT d.key_prefix FROM billing.database_identity AS d), p_invoice_id, p_attempt_no
);

COMMENT ON FUNCTION billing.gateway_key IS
'Idempotency key of a try: made of facts that do not change when it is repeated.';
