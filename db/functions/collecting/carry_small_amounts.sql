CREATE OR REPLACE FUNCTION billing.carry_small_amounts(
    p_triage billing.triage[],
    p_as_of timestamptz
)
RETURNS billing.judgement[]
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; subscriptions and invoices are locked by the caller
-- Writes:     invoice, pending_line
-- Raises:     nothing
-- Idempotent: no
DECLARE
    v_judgements billing.judgement[];
BEGIN
    SELECT coalesce(
        array_agg(
            billing.engine_judgement(i, NULL, 'SUCCEEDED', 'SUCCEEDED', NULL) ORDER BY i.customer_id, i.invoice_id
        ),
        '{}'
    )
    INTO v_judgements
    FROM unnest(p_triage) AS t
    INNER JOIN billing.invoice AS i ON i.customer_id = t.customer_id AND i.invoice_id = t.invoice_id
    WHERE t.way = 'CARRY';

    INSERT INTO billing.pending_line (
        customer_id, subscription_id, kind, description, amount, base_invoice_id, carried_from_invoice_id, created_at
    )
    SELECT
        i.customer_id, i.subscription_id, 'CARRIED', format('Carried from invoice %s', i.invoice_id), i.amount_due,
        coalesce(i.base_invoice_id, i.invoice_id), i.invoice_id, p_as_of
    FROM unnest(v_judgements) AS j
    INNER JOIN billing.invoice AS i ON i.customer_id = j.customer_id AND i.invoice_id = j.invoice_id
    ORDER BY i.customer_id, i.invoice_id;

    UPDATE billing.invoice AS i
    SET carried = i.carried + i.amount_due, status = 'PAID', paid_at = p_as_of, next_attempt_at = NULL,
        dunning_ends_at = NULL
    FROM unnest(v_judgements) AS j
    WHERE i.customer_id = j.customer_id AND i.invoice_id = j.invoice_id;
    RETURN v_judgements;
END;
$function$;

COMMENT ON FUNCTION billing.carry_small_amounts IS
'Closes invoices whose amount is below the minimum of the gateway, without a call; the amount stands on the next invoice.';
