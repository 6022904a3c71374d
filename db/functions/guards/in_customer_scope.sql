CREATE OR REPLACE FUNCTION billing.in_customer_scope(
    p_customer_id bigint
)
RETURNS boolean
LANGUAGE sql
STABLE
PARALLEL SAFE
RETURN coalesce(nullif(current_setting('billing.customer_scope', true), '') = p_customer_id::text, true);

COMMENT ON FUNCTION billing.in_customer_scope IS
'False where the setting billing.customer_scope binds the caller to another customer. Without SET, so that it is inlined into the views.';
