CREATE OR REPLACE FUNCTION billing.check_late_sends(
    p_customers bigint[] DEFAULT NULL
)
RETURNS SETOF billing.violation
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
SET plan_cache_mode = force_custom_plan
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
BEGIN
    RETURN QUERY
    SELECT
        'late_sends', 'BROKEN', a.customer_id, format('attempt %s', a.attempt_id),
        format('sent at %s, key from %s, invoice closed at %s', a.last_sent_at, a.started_at, c.closed_at)
    FROM billing.payment_attempt AS a
    INNER JOIN billing.gateway_account AS g ON g.gateway_account_id = a.gateway_account_id
    INNER JOIN billing.invoice AS i ON i.customer_id = a.customer_id AND i.invoice_id = a.invoice_id
    -- What was begun before a debt became one is not sent after that; what its customer asked for later is.
    CROSS JOIN LATERAL (
        SELECT coalesce(i.voided_at, i.paid_at, CASE WHEN a.started_at < i.failed_at THEN i.failed_at END) AS closed_at
    ) AS c
    WHERE (NOT billing.key_is_alive(a, g, a.last_sent_at) OR a.last_sent_at > c.closed_at)
      AND (p_customers IS NULL OR a.customer_id = ANY (p_customers));
END;
$function$;

COMMENT ON FUNCTION billing.check_late_sends IS
'A charge was sent with a key that the gateway may have forgotten, or for an invoice that was not open: it may have charged again.';
