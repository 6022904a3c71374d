CREATE OR REPLACE FUNCTION billing.make_default_method(
    p_customer_id bigint,
    p_payment_method_id bigint
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the customer
-- Writes:     payment_method
-- Raises:     nothing
-- Idempotent: yes
-- Two statements: unique keys are checked row by row.
BEGIN
    UPDATE billing.payment_method AS m
    SET is_default = false
    WHERE m.customer_id = p_customer_id AND m.is_default AND m.payment_method_id <> p_payment_method_id;

    UPDATE billing.payment_method AS m
    SET is_default = true
    WHERE m.customer_id = p_customer_id AND m.payment_method_id = p_payment_method_id AND NOT m.is_default;
END;
$function$;

COMMENT ON FUNCTION billing.make_default_method IS 'Makes one payment method the only default of its customer.';
