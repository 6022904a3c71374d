CREATE OR REPLACE FUNCTION billing.describe_change(
    p_customer_id bigint,
    p_subscription_id bigint
)
RETURNS jsonb
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT jsonb_build_object(
        'subscription', to_jsonb(s),
        'invoice', (
            SELECT to_jsonb(i) || jsonb_build_object('lines', (
                SELECT jsonb_agg(to_jsonb(l) ORDER BY l.line_no)
                FROM billing_api.invoice_line AS l
                WHERE l.customer_id = i.customer_id AND l.invoice_id = i.invoice_id
            ))
            FROM billing_api.invoice AS i
            INNER JOIN billing.invoice AS b ON b.customer_id = i.customer_id AND b.invoice_id = i.invoice_id
            INNER JOIN billing.subscription_change AS c ON c.customer_id = b.customer_id AND c.change_id = b.change_id
            WHERE c.customer_id = s.customer_id AND c.subscription_id = s.subscription_id
            ORDER BY c.change_id DESC
            LIMIT 1
        ),
        'nextInvoiceLines', (
            SELECT jsonb_agg(
                jsonb_build_object('description', l.description, 'amount', l.amount) ORDER BY l.pending_line_id
            )
            FROM billing.pending_line AS l
            WHERE l.customer_id = s.customer_id AND l.subscription_id = s.subscription_id
              AND l.billed_on_invoice_id IS NULL AND l.dropped_at IS NULL
        ),
        'creditBalance', coalesce((
            SELECT b.balance FROM billing_api.credit_balance AS b
            WHERE b.customer_id = s.customer_id AND b.currency = s.currency
        ), 0)
    )
    FROM billing_api.subscription AS s
    WHERE s.customer_id = p_customer_id AND s.subscription_id = p_subscription_id;
$function$;

COMMENT ON FUNCTION billing.describe_change IS
'The last change of a subscription as JSON: subscription, invoice with lines, waiting lines, credit balance; amounts in minor units.';
