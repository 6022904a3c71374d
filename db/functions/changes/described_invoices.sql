CREATE OR REPLACE FUNCTION billing.described_invoices(
    p_customer_id bigint,
    p_subscription_id bigint,
    p_after_invoice_id bigint
)
RETURNS SETOF billing.described_invoice
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
        i.invoice_id, i.kind,
        to_jsonb(i) || jsonb_build_object('lines', (
            SELECT coalesce(jsonb_agg(to_jsonb(l) ORDER BY l.line_no), '[]')
            FROM billing_api.invoice_line AS l
            WHERE l.customer_id = i.customer_id AND l.invoice_id = i.invoice_id
        ))
    FROM billing_api.invoice AS i
    WHERE i.customer_id = p_customer_id
      AND i.subscription_id = p_subscription_id
      AND i.invoice_id > p_after_invoice_id;
$function$;

COMMENT ON FUNCTION billing.described_invoices IS
'Invoices of a subscription that are younger than a given one, each as JSON with its lines; amounts in minor units.';
