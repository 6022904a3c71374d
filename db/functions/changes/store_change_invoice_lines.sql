CREATE OR REPLACE FUNCTION billing.store_change_invoice_lines(
    p_invoice billing.invoice,
    p_lines billing.priced_line[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     invoice_line, pending_line
-- Raises:     nothing of its own
-- Idempotent: no
-- A negative net is balanced by a line, so that the total is the sum of the lines. Those that waited are among them.
DECLARE
    v_net bigint := (SELECT coalesce(sum(l.amount), 0) FROM unnest(p_lines) AS l);
BEGIN
    INSERT INTO billing.invoice_line (
        customer_id, invoice_id, line_no, kind, description, amount, at_most, base_invoice_id, price_id, unit_amount,
        quantity, seconds_billed, seconds_total, period_start, period_end, carried_from_invoice_id
    )
    SELECT p_invoice.customer_id, p_invoice.invoice_id, l.*
    FROM unnest(p_lines) AS l
    ORDER BY l.line_no;

    IF v_net < 0 THEN
        INSERT INTO billing.invoice_line (customer_id, invoice_id, line_no, kind, description, amount, base_invoice_id)
        VALUES (
            p_invoice.customer_id, p_invoice.invoice_id, cardinality(p_lines) + 1, 'CREDIT', 'Added to your credit', -v_net,
            p_invoice.base_invoice_id
        );
    END IF;

    UPDATE billing.pending_line AS l
    SET billed_on_invoice_id = p_invoice.invoice_id
    WHERE l.customer_id = p_invoice.customer_id
      AND l.subscription_id = p_invoice.subscription_id
      AND l.billed_on_invoice_id IS NULL
      AND l.dropped_at IS NULL;
END;
$function$;

COMMENT ON FUNCTION billing.store_change_invoice_lines IS
'Writes the lines of a change to its invoice, balanced where they come to less than nothing.';
