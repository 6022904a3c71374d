CREATE OR REPLACE FUNCTION billing.require_erasable(
    p_customer_id bigint
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB316 something of the customer still goes on; what, stands in DETAIL
-- Idempotent: yes
DECLARE
    v_object text;
BEGIN
    SELECT x.object
    INTO v_object
    FROM (
        SELECT 1 AS place, format('subscription %s', s.subscription_id) AS object
        FROM billing.subscription AS s
        WHERE s.customer_id = p_customer_id AND s.status IN ('INCOMPLETE', 'TRIALING', 'ACTIVE', 'PAST_DUE', 'PAUSED')
        UNION ALL
        SELECT 2, format('invoice %s', i.invoice_id)
        FROM billing.invoice AS i
        WHERE i.customer_id = p_customer_id AND i.status = 'OPEN'
        UNION ALL
        SELECT 3, format('attempt %s of invoice %s', a.attempt_id, a.invoice_id)
        FROM billing.payment_attempt AS a
        WHERE a.customer_id = p_customer_id AND a.ended_at IS NULL
        UNION ALL
        SELECT 4, format('refund %s of invoice %s', f.refund_id, f.invoice_id)
        FROM billing.refund AS f
        WHERE f.customer_id = p_customer_id AND f.ended_at IS NULL
    ) AS x
    ORDER BY x.place, x.object
    LIMIT 1;

    IF found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB316',
            MESSAGE = format('customer %s cannot be erased yet', p_customer_id),
            DETAIL = v_object,
            HINT = 'Cancel, void or wait for it first.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_erasable IS
'Raises SB316 where a customer has a live subscription, an open invoice, or a charge or refund on its way.';
