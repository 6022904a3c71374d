CREATE OR REPLACE FUNCTION billing.lock_for_refunds(
    p_results billing.refund_result[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      subscription -> invoice -> refund, FOR NO KEY UPDATE, each in key order by a statement of its own
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
BEGIN
    PERFORM 1
    FROM billing.subscription AS s
    WHERE (s.customer_id, s.subscription_id) IN (
        SELECT i.customer_id, i.subscription_id
        FROM unnest(p_results) AS r
        INNER JOIN billing.refund AS f ON f.customer_id = r.customer_id AND f.refund_id = r.refund_id
        INNER JOIN billing.invoice AS i ON i.customer_id = f.customer_id AND i.invoice_id = f.invoice_id
    )
    ORDER BY s.customer_id, s.subscription_id
    FOR NO KEY UPDATE;

    PERFORM 1
    FROM billing.invoice AS i
    WHERE (i.customer_id, i.invoice_id) IN (
        SELECT f.customer_id, f.invoice_id
        FROM unnest(p_results) AS r
        INNER JOIN billing.refund AS f ON f.customer_id = r.customer_id AND f.refund_id = r.refund_id
    )
    ORDER BY i.customer_id, i.invoice_id
    FOR NO KEY UPDATE;

    PERFORM 1
    FROM billing.refund AS f
    WHERE (f.customer_id, f.refund_id) IN (SELECT r.customer_id, r.refund_id FROM unnest(p_results) AS r)
    ORDER BY f.customer_id, f.refund_id
    FOR NO KEY UPDATE;
END;
$function$;

COMMENT ON FUNCTION billing.lock_for_refunds IS 'Takes every lock that settling these refunds needs, in the one lock order.';
