CREATE OR REPLACE FUNCTION billing.book_unexpected_money(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      credit_balance, in key order
-- Writes:     refund, credit_entry, credit_balance
-- Raises:     nothing
-- Idempotent: no; an attempt is captured once
-- A loop: such money is rare, and each piece of it is a ledger entry of its own.
DECLARE
    v_judgement billing.judgement;
BEGIN
    PERFORM billing.request_refund(j.customer_id, j.attempt_id, j.unexpected, 'LATE_PAYMENT', p_as_of)
    FROM unnest(p_judgements) AS j
    WHERE j.verdict = 'APPLIED' AND j.unexpected > 0 AND billing.treatment_of_unexpected(j) = 'REFUNDED'
    ORDER BY j.customer_id, j.attempt_id;

    FOR v_judgement IN
        SELECT j.*
        FROM unnest(p_judgements) AS j
        WHERE j.verdict = 'APPLIED' AND j.unexpected > 0
          AND billing.treatment_of_unexpected(j) = 'CREDITED'
        ORDER BY j.customer_id, j.currency, j.attempt_id
    LOOP
        PERFORM billing.add_credit(
            v_judgement.customer_id,
            (SELECT a.currency
             FROM billing.payment_attempt AS a
             WHERE a.customer_id = v_judgement.customer_id AND a.attempt_id = v_judgement.attempt_id),
            CASE WHEN v_judgement.captured > 0 THEN 'SURPLUS' ELSE 'LATE_PAYMENT' END,
            v_judgement.unexpected,
            v_judgement.invoice_id,
            v_judgement.attempt_id,
            'payment beyond what was due',
            p_as_of
        );
    END LOOP;
END;
$function$;

COMMENT ON FUNCTION billing.book_unexpected_money IS
'Credits money beyond what an invoice owed where the customer has something live to use it for, and sends it back where not.';
