CREATE OR REPLACE FUNCTION billing.add_credit(
    p_customer_id bigint,
    p_currency text,
    p_kind text,
    p_amount bigint,
    p_invoice_id bigint,
    p_attempt_id bigint,
    p_reason text,
    p_as_of timestamptz
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      credit_balance, one row, FOR NO KEY UPDATE; last in the lock order
-- Writes:     credit_balance, credit_entry
-- Raises:     SB106 more is drawn than there is, or the balance would leave the range of amounts
-- Idempotent: no
DECLARE
    c_most CONSTANT bigint := 1000000000000000;
    v_balance billing.credit_balance;
BEGIN
    IF p_amount > 0 THEN
        INSERT INTO billing.credit_balance (customer_id, currency)
        VALUES (p_customer_id, p_currency)
        ON CONFLICT ON CONSTRAINT credit_balance_pkey DO NOTHING;
    END IF;

    SELECT b.*
    INTO v_balance
    FROM billing.credit_balance AS b
    WHERE b.customer_id = p_customer_id AND b.currency = p_currency
    FOR NO KEY UPDATE;

    IF (v_balance.balance::numeric + p_amount BETWEEN 0 AND c_most) IS NOT TRUE THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB106',
            MESSAGE = format('credit of customer %s cannot change by %s %s', p_customer_id, p_amount, p_currency),
            DETAIL = format('the balance is %s', coalesce(v_balance.balance, 0));
    END IF;

    INSERT INTO billing.credit_entry (
        customer_id, currency, entry_seq, kind, amount, balance_after, invoice_id, attempt_id, reason, actor, as_of
    )
    VALUES (
        p_customer_id, p_currency, v_balance.entry_seq + 1, p_kind, p_amount, v_balance.balance + p_amount,
        p_invoice_id, p_attempt_id, p_reason, billing.actor(), p_as_of
    );

    UPDATE billing.credit_balance AS b
    SET balance = b.balance + p_amount, entry_seq = b.entry_seq + 1
    WHERE b.customer_id = p_customer_id AND b.currency = p_currency;

    RETURN v_balance.balance + p_amount;
END;
$function$;

COMMENT ON FUNCTION billing.add_credit IS
'Books one change of a customer''s credit, in minor units (negative for DRAWN only), and returns the new balance.';
