CREATE OR REPLACE FUNCTION billing.check_scope()
RETURNS SETOF billing.violation
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT
        'scope', 'BROKEN', i.customer_id, format('invoice %s', i.invoice_id), 'names another resource than its subscription'
    FROM billing.invoice AS i
    INNER JOIN billing.subscription AS s ON s.customer_id = i.customer_id AND s.subscription_id = i.subscription_id
    WHERE i.resource_id <> s.resource_id
    UNION ALL
    SELECT
        'scope', 'BROKEN', a.customer_id, format('attempt %s', a.attempt_id),
        format('is in %s through account %s', a.currency, a.gateway_account_id)
    FROM billing.payment_attempt AS a
    INNER JOIN billing.invoice AS i ON i.customer_id = a.customer_id AND i.invoice_id = a.invoice_id
    LEFT JOIN billing.payment_method AS m
        ON m.customer_id = a.customer_id AND m.payment_method_id = a.payment_method_id
    WHERE a.currency <> i.currency OR a.gateway_account_id <> m.gateway_account_id;
$function$;

COMMENT ON FUNCTION billing.check_scope IS
'Rows that belong together name different resources, currencies or gateway accounts: money would buy the wrong thing.';
