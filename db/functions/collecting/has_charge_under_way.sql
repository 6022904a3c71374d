CREATE OR REPLACE FUNCTION billing.has_charge_under_way(
    p_customer_id bigint,
    p_subscription_id bigint
)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    SELECT EXISTS (
        SELECT 1
        FROM billing.invoice AS i
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
        WHERE i.customer_id = p_customer_id
          AND i.subscription_id = p_subscription_id
          AND a.status IN ('STARTED', 'UNKNOWN', 'PROCESSING')
    );
$function$;

COMMENT ON FUNCTION billing.has_charge_under_way IS
'True while money for an invoice of the subscription may be on its way.';
