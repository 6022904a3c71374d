CREATE OR REPLACE FUNCTION billing_ops.explain_invoice(
    p_invoice_id bigint
)
RETURNS SETOF billing.explained_line
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB204 unknown invoice
-- Idempotent: yes
-- Computes each line again from what the calculation stored.
DECLARE
    v_customer_id bigint;
BEGIN
    SELECT i.customer_id
    INTO v_customer_id
    FROM billing.invoice AS i
    WHERE i.invoice_id = p_invoice_id AND billing.in_customer_scope(i.customer_id);
    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB204',
            MESSAGE = format('invoice %s does not exist', coalesce(p_invoice_id::text, 'NULL'));
    END IF;

    RETURN QUERY
    SELECT
        l.line_no, l.description, l.amount,
        CASE
            WHEN l.kind = 'CREDIT' THEN '-(sum of the other lines)'
            WHEN l.kind = 'CARRIED' THEN format('carried by invoice %s', l.carried_from_invoice_id)
            WHEN l.kind = 'MANUAL' THEN 'as it was given'
            WHEN l.seconds_total IS NULL THEN format('%s x %s', l.unit_amount, l.quantity)
            ELSE format(
                CASE WHEN l.amount >= 0 THEN '%s' WHEN l.at_most IS NULL THEN '-%s' ELSE '-least(%s, %s paid for the period)' END,
                format('floor(%s x %s x %s s / %s s)', l.unit_amount, l.quantity, l.seconds_billed, l.seconds_total),
                l.at_most
            )
        END,
        billing.recomputed_amount(l)
    FROM billing.invoice_line AS l
    WHERE l.customer_id = v_customer_id AND l.invoice_id = p_invoice_id
    ORDER BY l.line_no;
END;
$function$;

COMMENT ON FUNCTION billing_ops.explain_invoice IS
'The lines of an invoice, each with the formula of its amount and the result of computing it again, in minor units.';
