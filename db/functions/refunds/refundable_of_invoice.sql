CREATE OR REPLACE FUNCTION billing.refundable_of_invoice(
    p_invoice billing.invoice
)
RETURNS bigint
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Never more than money has paid it; and with what was given as credit for unused time, never more than it was paid
    -- with money and credit together.
    SELECT greatest(
        0,
        least(
            captured.amount,
            p_invoice.amount_paid + p_invoice.credit_applied - given.amount - sent.amount
        )
    )::bigint
    FROM (
        SELECT coalesce(sum(billing.refundable_of_attempt(a)), 0) AS amount
        FROM billing.payment_attempt AS a
        WHERE a.customer_id = p_invoice.customer_id AND a.invoice_id = p_invoice.invoice_id AND a.status = 'SUCCEEDED'
    ) AS captured
    CROSS JOIN (
        SELECT coalesce(sum(e.amount), 0) AS amount
        FROM billing.credit_entry AS e
        WHERE e.customer_id = p_invoice.customer_id AND e.invoice_id = p_invoice.invoice_id AND e.kind = 'UNUSED_TIME'
    ) AS given
    CROSS JOIN (
        SELECT coalesce(sum(f.amount), 0) AS amount
        FROM billing.refund AS f
        WHERE f.customer_id = p_invoice.customer_id AND f.invoice_id = p_invoice.invoice_id
          AND f.status <> 'FAILED' AND f.purpose <> 'LATE_PAYMENT'
    ) AS sent;
$function$;

COMMENT ON FUNCTION billing.refundable_of_invoice IS
'What of an invoice may yet be refunded through the gateway, in minor units; refunds on their way count.';
