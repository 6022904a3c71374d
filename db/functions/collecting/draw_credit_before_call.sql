CREATE OR REPLACE FUNCTION billing.draw_credit_before_call(
    p_triage billing.triage[],
    p_as_of timestamptz
)
RETURNS billing.judgement[]
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      credit_balance
-- Writes:     credit_entry, credit_balance, invoice
-- Raises:     nothing
-- Idempotent: yes
-- A loop: credit that came after the invoice was issued is rare, and each draw depends on the one before. What remains
-- due is sent in the next round.
DECLARE
    v_judgements billing.judgement[] := '{}'::billing.judgement[];
    v_invoices billing.invoice[] := ARRAY(
        SELECT i
        FROM unnest(p_triage) AS t
        INNER JOIN billing.invoice AS i ON i.customer_id = t.customer_id AND i.invoice_id = t.invoice_id
        WHERE t.way = 'CREDIT'
        ORDER BY i.customer_id, i.currency, i.issued_at, i.invoice_id
    );
    v_invoice billing.invoice;
    v_drawn bigint;
BEGIN
    FOREACH v_invoice IN ARRAY v_invoices LOOP
        SELECT least(b.balance, v_invoice.amount_due)
        INTO v_drawn
        FROM billing.credit_balance AS b
        WHERE b.customer_id = v_invoice.customer_id AND b.currency = v_invoice.currency
        FOR NO KEY UPDATE;
        CONTINUE WHEN v_drawn = 0;

        PERFORM billing.add_credit(
            v_invoice.customer_id, v_invoice.currency, 'DRAWN', -v_drawn, v_invoice.invoice_id, NULL,
            'before a payment attempt', p_as_of
        );
        UPDATE billing.invoice AS i
        SET credit_applied = i.credit_applied + v_drawn,
            status = CASE WHEN i.amount_due = v_drawn THEN 'PAID' ELSE i.status END,
            paid_at = CASE WHEN i.amount_due = v_drawn THEN p_as_of END,
            next_attempt_at = CASE WHEN i.amount_due = v_drawn THEN NULL ELSE i.next_attempt_at END,
            dunning_ends_at = CASE WHEN i.amount_due = v_drawn THEN NULL ELSE i.dunning_ends_at END
        WHERE i.customer_id = v_invoice.customer_id AND i.invoice_id = v_invoice.invoice_id;

        IF v_drawn = v_invoice.amount_due THEN
            v_judgements := v_judgements || billing.engine_judgement(v_invoice, NULL, 'SUCCEEDED', 'SUCCEEDED', NULL);
        END IF;
    END LOOP;
    RETURN v_judgements;
END;
$function$;

COMMENT ON FUNCTION billing.draw_credit_before_call IS
'Draws credit on invoices that are about to be attempted, and returns a judgement for each that this paid in full.';
