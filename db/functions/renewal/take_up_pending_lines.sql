CREATE OR REPLACE FUNCTION billing.take_up_pending_lines(
    p_renewals billing.renewal[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; subscriptions are locked before
-- Writes:     invoice_line, pending_line
-- Raises:     nothing
-- Idempotent: no
BEGIN
    WITH taken AS (
        UPDATE billing.pending_line AS l
        SET billed_on_invoice_id = r.invoice_id
        FROM unnest(p_renewals) AS r
        WHERE r.verdict = 'RENEW'
          AND l.customer_id = r.customer_id
          AND l.subscription_id = r.subscription_id
          AND l.billed_on_invoice_id IS NULL
          AND l.dropped_at IS NULL
        RETURNING l.*
    )
    INSERT INTO billing.invoice_line (
        customer_id, invoice_id, line_no, kind, description, amount, at_most, base_invoice_id, price_id, unit_amount,
        quantity, seconds_billed, seconds_total, period_start, period_end, carried_from_invoice_id
    )
    SELECT
        t.customer_id, t.billed_on_invoice_id,
        1 + row_number() OVER (PARTITION BY t.customer_id, t.billed_on_invoice_id ORDER BY t.pending_line_id),
        t.kind, t.description, t.amount, t.at_most, t.base_invoice_id, t.price_id, t.unit_amount, t.quantity,
        t.seconds_billed, t.seconds_total, t.period_start, t.period_end, t.carried_from_invoice_id
    FROM taken AS t;

    INSERT INTO billing.invoice_line (customer_id, invoice_id, line_no, kind, description, amount)
    SELECT r.customer_id, r.invoice_id, 1000, 'CREDIT', 'Added to your credit', r.overflow
    FROM unnest(p_renewals) AS r
    WHERE r.verdict = 'RENEW' AND r.overflow > 0;
END;
$function$;

COMMENT ON FUNCTION billing.take_up_pending_lines IS
'Puts lines that waited for this renewal on its invoice; what they exceed it by is balanced by a line.';
