CREATE OR REPLACE FUNCTION billing.request_refund(
    p_customer_id bigint,
    p_attempt_id bigint,
    p_amount bigint,
    p_purpose text,
    p_as_of timestamptz
)
RETURNS bigint
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; the caller holds the subscription, or the invoice where there is none, so that numbers do not meet
    -- Writes:     refund
    -- Raises:     23505 where two callers took one number
    -- Idempotent: no
    -- The intent alone. It is sent by a worker, once this transaction has committed.
    INSERT INTO billing.refund (
        customer_id, invoice_id, attempt_id, refund_no, purpose, amount, currency, idempotency_key, gateway_account_id,
        gateway_payment_id, next_send_at, requested_by, requested_at
    )
    SELECT
        a.customer_id, a.invoice_id, a.attempt_id, n.refund_no, p_purpose, p_amount, a.currency,
        billing.refund_key(a.invoice_id, n.refund_no), a.gateway_account_id, a.gateway_payment_id, p_as_of,
        billing.actor(), p_as_of
    FROM billing.payment_attempt AS a
    CROSS JOIN LATERAL (
        SELECT coalesce(max(f.refund_no), 0) + 1 AS refund_no
        FROM billing.refund AS f
        WHERE f.customer_id = a.customer_id AND f.invoice_id = a.invoice_id
    ) AS n
    WHERE a.customer_id = p_customer_id AND a.attempt_id = p_attempt_id
    RETURNING refund_id;
$function$;

COMMENT ON FUNCTION billing.request_refund IS
'Stores that money of one attempt is to go back, and returns the id of the refund.';
