CREATE OR REPLACE FUNCTION billing.require_unsuspended(
    p_customer_id bigint,
    p_resource_id bigint
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB310 the resource is suspended; by whom, and the debt behind it, stand in DETAIL
-- Idempotent: yes
DECLARE
    v_resource billing.resource;
    v_debt text;
BEGIN
    SELECT r.*
    INTO STRICT v_resource
    FROM billing.resource AS r
    WHERE r.customer_id = p_customer_id AND r.resource_id = p_resource_id;
    IF v_resource.suspended_by_billing_at IS NULL AND v_resource.suspended_by_admin_at IS NULL THEN
        RETURN;
    END IF;

    SELECT string_agg(format('%s %s on invoice %s', i.amount_due, i.currency, i.invoice_id), ', ' ORDER BY i.invoice_id)
    INTO v_debt
    FROM billing.invoice AS i
    WHERE i.customer_id = p_customer_id AND i.resource_id = p_resource_id AND i.status = 'FAILED';
    RAISE EXCEPTION USING
        ERRCODE = 'SB310',
        MESSAGE = format('resource %s is suspended', v_resource.resource_id),
        DETAIL = concat_ws(
            '; ',
            CASE WHEN v_resource.suspended_by_admin_at IS NOT NULL THEN 'suspended by an administrator' END,
            CASE WHEN v_resource.suspended_by_billing_at IS NOT NULL THEN 'suspended by billing' END,
            'owed: ' || v_debt
        ),
        HINT = 'Pay what is owed; an administrator''s suspension is lifted by an administrator.';
END;
$function$;

COMMENT ON FUNCTION billing.require_unsuspended IS
'Raises SB310 where billing or an administrator has suspended the resource, naming the debt.';
