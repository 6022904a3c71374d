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
-- What follows from judgements of which no two are about one invoice.
DECLARE
    v_moves billing.status_move[];
BEGIN
    PERFORM billing.capture_payments(p_judgements, p_as_of);
    PERFORM billing.reschedule_invoices(p_judgements);
    PERFORM billing.step_dunning(p_judgements, p_as_of);
    PERFORM billing.block_methods(p_judgements, p_as_of);
    v_moves := billing.move_subscriptions(p_judgements, p_as_of);
    PERFORM billing.book_unexpected_money(p_judgements, p_as_of);
    PERFORM billing.open_cases(p_judgements, p_as_of);
    PERFORM billing.record_settlements(p_judgements, v_moves, p_as_of);
    PERFORM billing.lift_suspensions(p_judgements, p_as_of);
    PERFORM billing.finish_changes(p_judgements, p_as_of);
    PERFORM billing.end_failed_subscriptions(p_judgements, p_as_of);
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
END;
$function$;

COMMENT ON FUNCTION billing.apply_judgements IS
'Carries judgements into invoices, dunning, credit, cases, subscriptions and events.';
