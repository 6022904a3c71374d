CREATE OR REPLACE FUNCTION billing.recomputed_amount(
    p_line billing.invoice_line
)
RETURNS bigint
LANGUAGE sql
STABLE
SET search_path = ''
RETURN CASE
    WHEN p_line.kind = 'CREDIT' THEN (
        SELECT -sum(l.amount)
        FROM billing.invoice_line AS l
        WHERE l.customer_id = p_line.customer_id AND l.invoice_id = p_line.invoice_id AND l.kind <> 'CREDIT'
    )
    WHEN p_line.kind = 'CARRIED' THEN (
        SELECT i.carried
        FROM billing.invoice AS i
        WHERE i.customer_id = p_line.customer_id AND i.invoice_id = p_line.carried_from_invoice_id
    )
    WHEN p_line.kind = 'MANUAL' THEN p_line.amount
    WHEN p_line.seconds_total IS NULL THEN p_line.unit_amount::numeric * p_line.quantity
    ELSE sign(p_line.amount) * least(
        billing.prorated_amount(p_line.unit_amount, p_line.quantity, p_line.seconds_billed, p_line.seconds_total),
        p_line.at_most
    )
END;

COMMENT ON FUNCTION billing.recomputed_amount IS
'The amount of an invoice line in minor units, computed again from what the calculation stored.';
