CREATE FUNCTION billing_test.paid_subscription(
    p_customer_id bigint,
    p_plan_code text DEFAULT 'BASIC',
    p_resource_ref text DEFAULT NULL,
    p_anchor_day integer DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS bigint
LANGUAGE plpgsql
AS $function$
DECLARE
    v_subscription_id bigint;
BEGIN
    v_subscription_id := billing_test.subscription(
        p_customer_id, p_plan_code, p_resource_ref, 'PAY_FIRST', p_anchor_day, p_as_of => p_as_of
    );
    PERFORM billing_test.collect(p_as_of => p_as_of);
    RETURN v_subscription_id;
END;
$function$;

COMMENT ON FUNCTION billing_test.paid_subscription IS
'A new subscription that was paid through the gateway account sim at the instant of sign-up.';
