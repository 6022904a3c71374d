CREATE OR REPLACE FUNCTION billing.refund_unused_time(
    p_customer_id bigint,
    p_unused billing.unused_time[],
    p_as_of timestamptz
)
RETURNS billing.unused_time[]
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     refund
-- Raises:     nothing of its own
-- Idempotent: no
-- Money goes back the way it came; what was paid from credit comes back as credit. A change within the period was paid
-- by an invoice of its own.
DECLARE
    v_unused billing.unused_time;
    v_rest billing.unused_time[] := ARRAY[]::billing.unused_time[];
    v_refund_ids bigint[];
BEGIN
    FOREACH v_unused IN ARRAY p_unused LOOP
        v_refund_ids := billing.request_refunds(
            p_customer_id,
            ARRAY(
                SELECT i.invoice_id
                FROM billing.invoice AS i
                WHERE i.customer_id = p_customer_id
                  AND (i.invoice_id = v_unused.invoice_id OR i.base_invoice_id = v_unused.invoice_id)
            ),
            v_unused.amount, 'UNUSED_TIME', p_as_of
        );
        v_unused.amount := v_unused.amount - (
            SELECT coalesce(sum(f.amount), 0)
            FROM billing.refund AS f
            WHERE f.customer_id = p_customer_id AND f.refund_id = ANY (v_refund_ids)
        );
        v_rest := v_rest || v_unused;
    END LOOP;
    RETURN v_rest;
END;
$function$;

COMMENT ON FUNCTION billing.refund_unused_time IS
'Sends back what invoices were paid in money for time that will not be used, and returns what is left to become credit.';
