CREATE OR REPLACE FUNCTION billing.issue_manual_invoice(
    p_customer_id bigint,
    p_amount bigint,
    p_currency text,
    p_description text,
    p_dunning_policy_id bigint,
    p_as_of timestamptz
)
RETURNS billing.invoice
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      credit_balance, one row -> customer (its event counter)
-- Writes:     invoice, invoice_line, credit_entry, credit_balance, customer, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
DECLARE
    v_credit CONSTANT bigint := least(p_amount, billing.lock_credit_balance(p_customer_id, p_currency));
    v_invoice billing.invoice;
BEGIN
    INSERT INTO billing.invoice (
        customer_id, kind, status, currency, total, credit_applied, opens_period, drives_status, lane,
        gateway_account_id, next_attempt_at, dunning_policy_id, issued_at, paid_at
    )
    SELECT
        p_customer_id, 'MANUAL', CASE WHEN v_credit = p_amount THEN 'PAID' ELSE 'OPEN' END, p_currency, p_amount,
        v_credit, false, false, 'BACKLOG', m.gateway_account_id, CASE WHEN v_credit < p_amount THEN p_as_of END,
        p_dunning_policy_id, p_as_of, CASE WHEN v_credit = p_amount THEN p_as_of END
    FROM (SELECT 1) AS one
    LEFT JOIN LATERAL billing.usable_method(p_customer_id, NULL) AS m ON true
    RETURNING * INTO STRICT v_invoice;
    INSERT INTO billing.invoice_line (customer_id, invoice_id, line_no, kind, description, amount)
    VALUES (p_customer_id, v_invoice.invoice_id, 1, 'MANUAL', p_description, p_amount);
    IF v_credit > 0 THEN
        PERFORM billing.add_credit(
            p_customer_id, p_currency, 'DRAWN', -v_credit, v_invoice.invoice_id, NULL, 'manual invoice', p_as_of
        );
    END IF;

    PERFORM billing.record_customer_event(
        p_customer_id, 'InvoiceOpened', billing.invoice_payload(v_invoice), p_as_of
    );
    IF v_invoice.status = 'PAID' THEN
        PERFORM billing.record_customer_event(
            p_customer_id, 'InvoicePaid', billing.invoice_payload(v_invoice), p_as_of
        );
    END IF;
    RETURN v_invoice;
END;
$function$;

COMMENT ON FUNCTION billing.issue_manual_invoice IS
'Issues an invoice without a subscription; credit of the customer pays what it can.';
