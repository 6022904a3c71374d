CREATE OR REPLACE FUNCTION billing.lock_for_settlement(
    p_results billing.charge_result[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      subscription -> invoice -> payment_attempt, FOR NO KEY UPDATE, each in key order by a statement of its own
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- An attempt never changes its invoice, nor an invoice its subscription, so the keys may be read before the locks. A
-- decline may end the subscription and with it all of its open invoices, which are therefore locked as well.
BEGIN
    PERFORM 1
    FROM billing.subscription AS s
    WHERE (s.customer_id, s.subscription_id) IN (
        SELECT i.customer_id, i.subscription_id
        FROM unnest(p_results) AS r
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = r.customer_id AND a.attempt_id = r.attempt_id
        INNER JOIN billing.invoice AS i ON i.customer_id = a.customer_id AND i.invoice_id = a.invoice_id
    )
    ORDER BY s.customer_id, s.subscription_id
    FOR NO KEY UPDATE;

    PERFORM 1
    FROM billing.invoice AS i
    WHERE (i.customer_id, i.invoice_id) IN (
        SELECT a.customer_id, a.invoice_id
        FROM unnest(p_results) AS r
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = r.customer_id AND a.attempt_id = r.attempt_id
        UNION ALL
        SELECT o.customer_id, o.invoice_id
        FROM unnest(p_results) AS r
        INNER JOIN billing.payment_attempt AS a ON a.customer_id = r.customer_id AND a.attempt_id = r.attempt_id
        INNER JOIN billing.invoice AS c ON c.customer_id = a.customer_id AND c.invoice_id = a.invoice_id
        INNER JOIN billing.invoice AS o
            ON o.customer_id = c.customer_id AND o.subscription_id = c.subscription_id AND o.status = 'OPEN'
    )
    ORDER BY i.customer_id, i.invoice_id
    FOR NO KEY UPDATE;

    PERFORM 1
    FROM billing.payment_attempt AS a
    WHERE (a.customer_id, a.attempt_id) IN (SELECT r.customer_id, r.attempt_id FROM unnest(p_results) AS r)
    ORDER BY a.customer_id, a.attempt_id
    FOR NO KEY UPDATE;
END;
$function$;

COMMENT ON FUNCTION billing.lock_for_settlement IS
'Locks everything that a batch of results is about, in the one order that all writers keep.';
