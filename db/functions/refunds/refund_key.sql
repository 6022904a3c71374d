CREATE OR REPLACE FUNCTION billing.refund_key(
    p_invoice_id bigint,
    p_refund_no integer
)
RETURNS text
LANGUAGE sql
STABLE
SET search_path = ''
RETURN format(
    '%s-inv-%s-refund-%s', (SELECT d.key_prefix FROM billing.database_identity AS d), p_invoice_id, p_refund_no
);

COMMENT ON FUNCTION billing.refund_key IS
'Idempotency key, and our reference at the gateway, of one refund: unique in the world by the prefix of this database.';
