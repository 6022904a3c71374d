CREATE FUNCTION billing_test.subscription(
    p_customer_id bigint,
    p_plan_code text DEFAULT 'BASIC',
    p_resource_ref text DEFAULT NULL,
    p_payment_behavior text DEFAULT 'GRANT_FIRST',
    p_anchor_day integer DEFAULT NULL,
    p_auto_renew boolean DEFAULT true,
    p_term_periods integer DEFAULT NULL,
    p_dunning_policy text DEFAULT 'standard',
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS bigint
LANGUAGE plpgsql
AS $function$
DECLARE
    v_subscription_id bigint;
BEGIN
    SELECT s.subscription_id
    INTO STRICT v_subscription_id
    FROM billing_api.create_subscription(
        p_customer_id, p_plan_code, gen_random_uuid()::text, p_resource_ref,
        p_payment_behavior => p_payment_behavior, p_anchor_day => p_anchor_day, p_auto_renew => p_auto_renew,
        p_term_periods => p_term_periods, p_dunning_policy => p_dunning_policy, p_as_of => p_as_of
    ) AS s;
    RETURN v_subscription_id;
END;
$function$;

COMMENT ON FUNCTION billing_test.subscription IS
'A new subscription, granted first unless said otherwise, with its invoice still open.';
