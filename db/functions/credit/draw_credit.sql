CREATE OR REPLACE FUNCTION billing.draw_credit(
    p_renewals billing.renewal[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; lock_credit came before
-- Writes:     credit_entry, credit_balance
-- Raises:     23505 or 23514 where two draws were computed from one balance
-- Idempotent: no
BEGIN
    INSERT INTO billing.credit_entry (
        customer_id, currency, entry_seq, kind, amount, balance_after, invoice_id, reason, actor, as_of
    )
    SELECT
        r.customer_id, r.currency, r.credit_seq, 'DRAWN', -r.credit, r.credit_balance, r.invoice_id,
        'renewal', billing.actor(), p_as_of
    FROM unnest(p_renewals) AS r
    WHERE r.credit > 0
    ORDER BY r.customer_id, r.currency, r.credit_seq;

    UPDATE billing.credit_balance AS b
    SET balance = d.balance, entry_seq = d.entry_seq
    FROM (
        SELECT r.customer_id, r.currency, min(r.credit_balance) AS balance, max(r.credit_seq) AS entry_seq
        FROM unnest(p_renewals) AS r
        WHERE r.credit > 0
        GROUP BY r.customer_id, r.currency
    ) AS d
    WHERE b.customer_id = d.customer_id AND b.currency = d.currency;
END;
$function$;

COMMENT ON FUNCTION billing.draw_credit IS 'Books what the renewals draw from the credit of their customers.';
