CREATE OR REPLACE FUNCTION billing.describe_change(
    p_customer_id bigint,
    p_subscription_id bigint,
    p_after_invoice_id bigint
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
            SELECT i.described
            FROM billing.described_invoices(p_customer_id, p_subscription_id, p_after_invoice_id) AS i
            WHERE i.kind = 'CHANGE'
        ),
        'renewals', (
            SELECT coalesce(jsonb_agg(i.described ORDER BY i.invoice_id), '[]')
            FROM billing.described_invoices(p_customer_id, p_subscription_id, p_after_invoice_id) AS i
            WHERE i.kind <> 'CHANGE'
        ),
        'nextInvoiceLines', (
            SELECT jsonb_agg(
                jsonb_build_object('description', l.description, 'amount', l.amount) ORDER BY l.line_no
            )
            FROM billing.waiting_lines(p_customer_id, p_subscription_id, 0) AS l
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
'What a change has done as JSON: subscription, its invoice with lines, invoices of boundaries that were overdue, waiting lines, credit balance; amounts in minor units.';
