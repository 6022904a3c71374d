CREATE OR REPLACE FUNCTION billing.apply_judgements(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      payment_method -> credit_balance -> resource -> customer; subscriptions, invoices and attempts are locked by
--             the caller
-- Writes:     invoice, payment_method, subscription_change, refund, credit_entry, credit_balance, reconciliation_case,
--             subscription, subscription_period, resource, customer, subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
-- What follows from judgements of which no two are about one invoice. Most batches are small, and a step costs as much
-- for nothing as for one row, so that each is taken only where something asks for it.
DECLARE
    v_any record;
    v_moves billing.status_move[];
BEGIN
    SELECT
        bool_or(j.verdict = 'APPLIED' AND j.attempt_status IS NOT DISTINCT FROM 'SUCCEEDED') AS pays,
        bool_or(
            j.verdict = 'APPLIED' AND (j.attempt_status IS NOT DISTINCT FROM 'DECLINED' OR j.outcome = 'PASSED')
        ) AS fails,
        bool_or(j.unexpected IS NOT NULL AND j.unexpected > 0) AS is_unexpected,
        bool_or(j.case_kind IS NOT NULL) AS needs_a_person,
        bool_or(j.subscription_id IS NULL) AS is_manual
    INTO v_any
    FROM unnest(p_judgements) AS j;

    IF v_any.pays THEN
        PERFORM billing.capture_payments(p_judgements, p_as_of);
    END IF;
    PERFORM billing.reschedule_invoices(p_judgements);
    IF v_any.fails THEN
        PERFORM billing.step_dunning(p_judgements, p_as_of);
        PERFORM billing.block_methods(p_judgements, p_as_of);
    END IF;
    v_moves := billing.move_subscriptions(p_judgements, p_as_of);
    IF v_any.is_unexpected THEN
        PERFORM billing.book_unexpected_money(p_judgements, p_as_of);
    END IF;
    IF v_any.is_unexpected OR v_any.needs_a_person THEN
        PERFORM billing.open_cases(p_judgements, p_as_of);
    END IF;
    PERFORM billing.record_settlements(p_judgements, v_moves, p_as_of);
    IF v_any.pays THEN
        PERFORM billing.lift_suspensions(p_judgements, p_as_of);
    END IF;
    IF v_any.pays OR v_any.fails THEN
        PERFORM billing.finish_changes(p_judgements, p_as_of);
    END IF;
    PERFORM billing.end_failed_subscriptions(p_judgements, p_as_of);
    IF v_any.is_manual THEN
        PERFORM billing.record_manual_invoices(p_judgements, p_as_of);
        PERFORM billing.fail_manual_invoices(
            ARRAY(
                SELECT ROW(i.customer_id, i.invoice_id)::billing.invoice_key
                FROM unnest(p_judgements) AS j
                INNER JOIN billing.invoice AS i ON i.customer_id = j.customer_id AND i.invoice_id = j.invoice_id
                WHERE i.kind = 'MANUAL'
            ),
            p_as_of
        );
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.apply_judgements IS
'Carries judgements into invoices, dunning, credit, cases, subscriptions and events.';
