CREATE OR REPLACE FUNCTION billing.issue_change_invoice(
    p_subscription billing.subscription,
    p_change billing.plan_change,
    p_as_of timestamptz
)
RETURNS billing.invoice
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      credit_balance, one row
-- Writes:     invoice, invoice_line, credit_entry, credit_balance
-- Raises:     23505 where the new period is billed already
-- Idempotent: no
-- A negative net becomes credit, never a negative charge: a balancing line, so that the total is the sum of the lines.
DECLARE
    v_lines billing.priced_line[] := ARRAY(SELECT l FROM billing.change_lines(p_change) AS l ORDER BY l.line_no);
    v_net bigint := (SELECT coalesce(sum(l.amount), 0) FROM unnest(v_lines) AS l);
    v_total bigint := greatest(v_net, 0);
    v_credit bigint := least(v_total, billing.lock_credit_balance(p_change.customer_id, p_change.currency));
    v_invoice billing.invoice;
BEGIN
    INSERT INTO billing.invoice (
        customer_id, subscription_id, resource_id, kind, status, currency, total, credit_applied, period_start,
        period_end, opens_period, drives_status, plan_code, price_id, unit_amount, quantity, lane, gateway_account_id,
        next_attempt_at, issued_at, paid_at, change_id, base_invoice_id
    )
    SELECT
        p_change.customer_id, p_change.subscription_id, p_subscription.resource_id, 'CHANGE',
        CASE WHEN v_credit = v_total THEN 'PAID' ELSE 'OPEN' END, p_change.currency, v_total, v_credit,
        p_change.effective_at, nullif(p_change.period_end, p_change.effective_at), p_change.opens_period,
        p_change.payment_behavior = 'GRANT_FIRST', p_change.to_plan_code, p_change.to_price_id,
        p_change.to_unit_amount, p_change.to_quantity, 'INTERACTIVE',
        (SELECT m.gateway_account_id
         FROM billing.usable_method(p_change.customer_id, p_subscription.payment_method_id) AS m),
        CASE WHEN v_credit < v_total THEN p_as_of END, p_as_of, CASE WHEN v_credit = v_total THEN p_as_of END,
        p_change.change_id, CASE WHEN NOT p_change.opens_period THEN p_change.base_invoice_id END
    RETURNING * INTO v_invoice;

    INSERT INTO billing.invoice_line (
        customer_id, invoice_id, line_no, kind, description, amount, price_id, unit_amount, quantity, seconds_billed,
        seconds_total, period_start, period_end
    )
    SELECT v_invoice.customer_id, v_invoice.invoice_id, l.*
    FROM (
        SELECT x.* FROM unnest(v_lines) AS x
        UNION ALL
        SELECT cardinality(v_lines) + 1, 'CREDIT', 'Added to your credit', -v_net, NULL, NULL, NULL, NULL, NULL, NULL, NULL
        WHERE v_net < 0
    ) AS l;

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
