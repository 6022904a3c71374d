CREATE OR REPLACE FUNCTION billing.require_payment_method(
    p_customer_id bigint,
    p_payment_method_id bigint
)
RETURNS billing.payment_method
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB205 no such method of this customer, or removed
-- Idempotent: yes
DECLARE
    v_method billing.payment_method;
BEGIN
    SELECT m.*
    INTO v_method
    FROM billing.payment_method AS m
    WHERE m.customer_id = p_customer_id
      AND m.payment_method_id = p_payment_method_id
      AND m.removed_at IS NULL;

    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB205',
            MESSAGE = format(
                'customer %s has no payment method %s', p_customer_id, coalesce(p_payment_method_id::text, 'NULL')
            );
    END IF;

    RETURN v_method;
END;
$function$;

COMMENT ON FUNCTION billing.require_payment_method IS
'Returns a payment method of this customer that is not removed, or raises SB205.';
