CREATE OR REPLACE FUNCTION billing.waiting_lines(
    p_customer_id bigint,
    p_subscription_id bigint,
    p_after integer
)
RETURNS SETOF billing.priced_line
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing; the caller holds the subscription
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT
        (p_after + row_number() OVER (ORDER BY l.pending_line_id))::integer,
        l.kind, l.description, l.amount, l.at_most, l.base_invoice_id, l.price_id, l.unit_amount, l.quantity,
        l.seconds_billed, l.seconds_total, l.period_start, l.period_end, l.carried_from_invoice_id
    FROM billing.pending_line AS l
    WHERE l.customer_id = p_customer_id AND l.subscription_id = p_subscription_id
      AND l.billed_on_invoice_id IS NULL AND l.dropped_at IS NULL;
$function$;

COMMENT ON FUNCTION billing.waiting_lines IS
'Lines of a subscription that wait for its next invoice, numbered from p_after on; amounts in minor units.';
