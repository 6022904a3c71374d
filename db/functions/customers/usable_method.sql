CREATE OR REPLACE FUNCTION billing.usable_method(
    p_customer_id bigint,
    p_payment_method_id bigint
)
RETURNS SETOF billing.payment_method
LANGUAGE sql
STABLE
PARALLEL SAFE
ROWS 1
AS $function$
    -- The chosen one where it is still there, else the default. Without SET, so that it is inlined.
    SELECT m.*
    FROM billing.payment_method AS m
    WHERE m.customer_id = p_customer_id
      AND m.removed_at IS NULL
      AND (m.payment_method_id = p_payment_method_id OR m.is_default)
    ORDER BY m.payment_method_id IS DISTINCT FROM p_payment_method_id
    LIMIT 1;
$function$;

COMMENT ON FUNCTION billing.usable_method IS
'The payment method that a charge would use: the chosen one if it is not removed, else the default of the customer, else none.';
