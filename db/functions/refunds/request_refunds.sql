CREATE OR REPLACE FUNCTION billing.request_refunds(
    p_customer_id bigint,
    p_invoice_ids bigint[],
    p_amount bigint,
    p_purpose text,
    p_as_of timestamptz
)
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription, or the invoice where there is none
-- Writes:     refund
-- Raises:     nothing of its own
-- Idempotent: no
-- A loop: an invoice that several attempts have paid is rare. The newest money goes first. What these attempts cannot
-- give is left out.
DECLARE
    v_attempt billing.payment_attempt;
    v_left bigint := p_amount;
    v_part bigint;
    v_refund_ids bigint[] := ARRAY[]::bigint[];
BEGIN
    FOR v_attempt IN
        SELECT a.*
        FROM billing.payment_attempt AS a
        WHERE a.customer_id = p_customer_id AND a.invoice_id = ANY (p_invoice_ids) AND a.status = 'SUCCEEDED'
        ORDER BY a.attempt_id DESC
    LOOP
        v_part := least(v_left, billing.refundable_of_attempt(v_attempt));
        CONTINUE WHEN v_part <= 0;
        v_refund_ids := v_refund_ids || billing.request_refund(
            p_customer_id, v_attempt.attempt_id, v_part, p_purpose, p_as_of
        );
        v_left := v_left - v_part;
    END LOOP;
    RETURN v_refund_ids;
END;
$function$;

COMMENT ON FUNCTION billing.request_refunds IS
'Stores that so much of what invoices were paid is to go back, one refund per attempt that captured it. Returns their ids.';
