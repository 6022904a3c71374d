CREATE OR REPLACE FUNCTION billing.decline_without_method(
    p_triage billing.triage[],
    p_as_of timestamptz
)
RETURNS billing.judgement[]
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; subscriptions and invoices are locked by the caller
-- Writes:     payment_attempt, payment_report, invoice
-- Raises:     nothing of its own
-- Idempotent: no
DECLARE
    v_judgements billing.judgement[];
BEGIN
    WITH declined AS (
        INSERT INTO billing.payment_attempt (
            customer_id, invoice_id, attempt_no, status, amount, currency, idempotency_key, description,
            decline_code, decline_class, started_at, ended_at
        )
        SELECT
            i.customer_id, i.invoice_id, i.attempt_count + 1, 'DECLINED', i.amount_due, i.currency,
            billing.gateway_key(i.invoice_id, i.attempt_count + 1), billing.charge_text(i),
            'no_payment_method', billing.decline_class('*', 'no_payment_method'), p_as_of, p_as_of
        FROM unnest(p_triage) AS t
        INNER JOIN billing.invoice AS i ON i.customer_id = t.customer_id AND i.invoice_id = t.invoice_id
        WHERE t.way = 'NO_METHOD'
        ORDER BY i.customer_id, i.invoice_id
        RETURNING customer_id, invoice_id, attempt_id
    )
    SELECT coalesce(
        array_agg(billing.engine_judgement(i, d.attempt_id, 'DECLINED', 'DECLINED', 'no_payment_method')), '{}'
    )
    INTO v_judgements
    FROM declined AS d
    INNER JOIN billing.invoice AS i ON i.customer_id = d.customer_id AND i.invoice_id = d.invoice_id;

    UPDATE billing.invoice AS i
    SET attempt_count = i.attempt_count + 1, next_attempt_at = NULL
    FROM unnest(v_judgements) AS j
    WHERE i.customer_id = j.customer_id AND i.invoice_id = j.invoice_id;

    PERFORM billing.store_reports(v_judgements, p_as_of);
    RETURN v_judgements;
END;
$function$;

COMMENT ON FUNCTION billing.decline_without_method IS
'Declines invoices for which there is no payment method, with code no_payment_method, without calling anybody.';
