CREATE OR REPLACE FUNCTION billing.store_pending_lines(
    p_change billing.plan_change,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; the caller holds the subscription
    -- Writes:     pending_line
    -- Raises:     nothing
    -- Idempotent: no
    INSERT INTO billing.pending_line (
        customer_id, subscription_id, kind, description, amount, at_most, base_invoice_id, price_id, unit_amount,
        quantity, seconds_billed, seconds_total, period_start, period_end, created_at
    )
    SELECT
        p_change.customer_id, p_change.subscription_id, 'PRORATION', l.description, l.amount, l.at_most,
        l.base_invoice_id, l.price_id, l.unit_amount, l.quantity, p_change.seconds_left, p_change.seconds_total,
        l.period_start, l.period_end, p_as_of
    FROM billing.change_lines(p_change) AS l
    ORDER BY l.line_no;
$function$;

COMMENT ON FUNCTION billing.store_pending_lines IS 'Keeps the lines of a change for the next invoice that opens a period.';
