CREATE OR REPLACE FUNCTION billing.refundable_of_invoice(
    p_invoice billing.invoice
)
RETURNS bigint
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Never more than money has paid it; and never more than is left of what was paid for its period, with money and credit
    -- together. What it was paid for lines about other periods is left as long as it is left of those.
    SELECT greatest(0, least(captured.amount, own.amount + others.amount))::bigint
    FROM (
        SELECT coalesce(sum(billing.refundable_of_attempt(a)), 0) AS amount
        FROM billing.payment_attempt AS a
        WHERE a.customer_id = p_invoice.customer_id AND a.invoice_id = p_invoice.invoice_id AND a.status = 'SUCCEEDED'
    ) AS captured
    CROSS JOIN (
        SELECT coalesce(p_invoice.base_invoice_id, p_invoice.invoice_id) AS base_invoice_id
    ) AS b
    CROSS JOIN LATERAL (
        SELECT billing.refundable_of_period(p_invoice.customer_id, b.base_invoice_id) AS amount
    ) AS own
    CROSS JOIN LATERAL (
        SELECT coalesce(
            sum(least(o.amount, greatest(billing.refundable_of_period(p_invoice.customer_id, o.base_invoice_id), 0))), 0
        ) AS amount
        FROM (
            SELECT l.base_invoice_id, sum(l.amount) AS amount
            FROM billing.invoice_line AS l
            WHERE l.customer_id = p_invoice.customer_id AND l.invoice_id = p_invoice.invoice_id
              AND l.base_invoice_id <> b.base_invoice_id
            GROUP BY l.base_invoice_id
            HAVING sum(l.amount) > 0
        ) AS o
    ) AS others;
$function$;

COMMENT ON FUNCTION billing.refundable_of_invoice IS
'What of an invoice may yet be refunded through the gateway, in minor units; refunds on their way count.';
