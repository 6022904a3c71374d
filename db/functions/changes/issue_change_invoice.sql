CREATE OR REPLACE FUNCTION billing.issue_change_invoice(
    p_subscription billing.subscription,
    p_change billing.plan_change,
    p_as_of timestamptz
)
RETURNS billing.invoice
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      credit_balance, one row
-- Writes:     invoice, invoice_line, pending_line, credit_entry, credit_balance
-- Raises:     23505 where the new period is billed already
-- Idempotent: no
-- A negative net becomes credit, never a negative charge. The lines that wait are taken up with it. At the very start of a period its invoice has opened it already, and this one replaces what that bills.
DECLARE
    v_lines billing.priced_line[] := ARRAY(SELECT l FROM billing.change_lines(p_change) AS l ORDER BY l.line_no);
    v_net bigint;
    v_total bigint;
    v_credit bigint;
    v_invoice billing.invoice;
BEGIN
    v_lines := v_lines || ARRAY(
        SELECT l
        FROM billing.waiting_lines(p_change.customer_id, p_change.subscription_id, cardinality(v_lines)) AS l
        ORDER BY l.line_no
    );
    v_net := (SELECT coalesce(sum(l.amount), 0) FROM unnest(v_lines) AS l);
    v_total := greatest(v_net, 0);
    v_credit := least(v_total, billing.lock_credit_balance(p_change.customer_id, p_change.currency));

    INSERT INTO billing.invoice (
        customer_id, subscription_id, resource_id, kind, status, currency, total, credit_applied, period_start,
        period_end, opens_period, drives_status, plan_code, price_id, unit_amount, quantity, lane, gateway_account_id,
        next_attempt_at, issued_at, paid_at, change_id, base_invoice_id
    )
    SELECT
        p_change.customer_id, p_change.subscription_id, p_subscription.resource_id, 'CHANGE',
        CASE WHEN v_credit = v_total THEN 'PAID' ELSE 'OPEN' END, p_change.currency, v_total, v_credit,
        p_change.effective_at, nullif(p_change.period_end, p_change.effective_at),
        p_change.opens_period AND p_change.effective_at > p_subscription.current_period_start,
        p_change.payment_behavior = 'GRANT_FIRST', p_change.to_plan_code, p_change.to_price_id,
        p_change.to_unit_amount, p_change.to_quantity,
        CASE p_change.payment_behavior WHEN 'PAY_FIRST' THEN 'INTERACTIVE' ELSE 'BACKLOG' END,
        (SELECT m.gateway_account_id
         FROM billing.usable_method(p_change.customer_id, p_subscription.payment_method_id) AS m),
        CASE WHEN v_credit < v_total THEN p_as_of END, p_as_of, CASE WHEN v_credit = v_total THEN p_as_of END,
        p_change.change_id, CASE WHEN NOT p_change.opens_period THEN p_change.base_invoice_id END
    RETURNING * INTO v_invoice;

    PERFORM billing.store_change_invoice_lines(v_invoice, v_lines);

    IF v_credit > 0 THEN
        PERFORM billing.add_credit(
            v_invoice.customer_id, v_invoice.currency, 'DRAWN', -v_credit, v_invoice.invoice_id, NULL,
            'change of plan', p_as_of
        );
    ELSIF v_net < 0 THEN
        PERFORM billing.add_credit(
            v_invoice.customer_id, v_invoice.currency, 'UNUSED_TIME', -v_net, v_invoice.invoice_id, NULL,
            'change of plan', p_as_of
        );
    END IF;
    RETURN v_invoice;
END;
$function$;

COMMENT ON FUNCTION billing.issue_change_invoice IS
'Bills a change now: its lines, credit drawn or given, due at once; PAID where nothing remains due.';
