CREATE OR REPLACE FUNCTION billing.issue_initial_invoice(
    p_terms billing.sign_up,
    p_subscription_id bigint
)
RETURNS billing.invoice
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      credit_balance, one row
-- Writes:     invoice, invoice_line, credit_entry, credit_balance
-- Raises:     23505 where the period is billed already
-- Idempotent: no
-- The invoice of a pay-first sign-up carries a provisional period and drives nothing: its decline climbs no ladder.
DECLARE
    c_first CONSTANT billing.first_period := p_terms.first;
    c_is_stub CONSTANT boolean := c_first.period_start > c_first.full_start;
    c_seconds CONSTANT bigint := extract(epoch FROM c_first.period_end - c_first.period_start)::bigint;
    c_seconds_total CONSTANT bigint :=
        extract(epoch FROM c_first.period_end - c_first.full_start)::bigint;
    v_total bigint;
    v_credit bigint;
    v_gateway_account_id integer;
    v_invoice billing.invoice;
BEGIN
    v_total := CASE
        WHEN c_is_stub THEN billing.prorated_amount(p_terms.unit_amount, p_terms.quantity, c_seconds, c_seconds_total)
        ELSE p_terms.unit_amount * p_terms.quantity
    END;
    v_credit := least(v_total, billing.lock_credit_balance(p_terms.customer_id, p_terms.currency));
    SELECT m.gateway_account_id
    INTO v_gateway_account_id
    FROM billing.usable_method(p_terms.customer_id, p_terms.payment_method_id) AS m;

    INSERT INTO billing.invoice (
        customer_id, subscription_id, resource_id, kind, status, currency, total, credit_applied, period_start,
        period_end, opens_period, drives_status, plan_code, price_id, unit_amount, quantity, lane, gateway_account_id,
        next_attempt_at, issued_at, paid_at
    )
    VALUES (
        p_terms.customer_id, p_subscription_id, p_terms.resource_id, 'INITIAL',
        CASE WHEN v_credit = v_total THEN 'PAID' ELSE 'OPEN' END, p_terms.currency, v_total, v_credit,
        c_first.period_start, c_first.period_end, true, p_terms.status = 'ACTIVE', p_terms.plan_code,
        p_terms.price_id, p_terms.unit_amount, p_terms.quantity, 'INTERACTIVE', v_gateway_account_id,
        CASE WHEN v_credit < v_total THEN p_terms.as_of END, p_terms.as_of,
        CASE WHEN v_credit = v_total THEN p_terms.as_of END
    )
    RETURNING * INTO v_invoice;

    INSERT INTO billing.invoice_line (
        customer_id, invoice_id, line_no, kind, description, amount, price_id, unit_amount, quantity, seconds_billed,
        seconds_total, period_start, period_end
    )
    VALUES (
        v_invoice.customer_id, v_invoice.invoice_id, 1, CASE WHEN c_is_stub THEN 'PRORATION' ELSE 'PERIOD' END,
        p_terms.plan_name, v_total, p_terms.price_id, p_terms.unit_amount, p_terms.quantity,
        CASE WHEN c_is_stub THEN c_seconds END, CASE WHEN c_is_stub THEN c_seconds_total END, c_first.period_start,
        c_first.period_end
    );
    IF v_credit > 0 THEN
        PERFORM billing.add_credit(
            v_invoice.customer_id, v_invoice.currency, 'DRAWN', -v_credit, v_invoice.invoice_id, NULL, 'sign-up',
            p_terms.as_of
        );
    END IF;
    RETURN v_invoice;
END;
$function$;

COMMENT ON FUNCTION billing.issue_initial_invoice IS
'Issues the first invoice of a subscription, with its line, due at once; PAID where it comes to zero or credit covers it.';
