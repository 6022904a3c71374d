CREATE FUNCTION billing_test.sign_up(
    p_key text,
    p_resource_ref text DEFAULT NULL,
    p_quantity integer DEFAULT 1
)
RETURNS SETOF billing_api.subscription
LANGUAGE sql
AS $function$
    SELECT s.*
    FROM billing.customer AS c
    CROSS JOIN LATERAL billing_api.create_subscription(
        c.customer_id, 'PLAN_' || substring(c.external_ref FROM '[0-9]+'), p_key, p_resource_ref, p_quantity
    ) AS s
    WHERE c.customer_id = (SELECT max(n.customer_id) FROM billing.customer AS n);
$function$;

COMMENT ON FUNCTION billing_test.sign_up IS 'Signs the newest customer up for the newest plan.';
