CREATE OR REPLACE FUNCTION billing.check_refunds(
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
        'refunds', 'BROKEN', a.customer_id, format('attempt %s', a.attempt_id),
        format('captured %s, refunded or to be refunded %s', a.captured_amount, f.amount)
    FROM (
        SELECT x.customer_id, x.attempt_id, sum(x.amount) AS amount
        FROM billing.refund AS x
        WHERE x.status <> 'FAILED'
        GROUP BY x.customer_id, x.attempt_id
    ) AS f
    INNER JOIN billing.payment_attempt AS a ON a.customer_id = f.customer_id AND a.attempt_id = f.attempt_id
    WHERE f.amount > coalesce(a.captured_amount, 0)
      AND (p_customers IS NULL OR a.customer_id = ANY (p_customers))
    UNION ALL
    SELECT
        'refunds', 'BROKEN', i.customer_id, format('invoice %s', i.invoice_id),
        format('says that %s went back, its refunds say %s', i.amount_refunded, coalesce(f.amount, 0))
    FROM billing.invoice AS i
    LEFT JOIN (
        SELECT x.customer_id, x.invoice_id, sum(x.amount) AS amount
        FROM billing.refund AS x
        WHERE x.status = 'SUCCEEDED' AND x.purpose <> 'LATE_PAYMENT'
        GROUP BY x.customer_id, x.invoice_id
    ) AS f ON f.customer_id = i.customer_id AND f.invoice_id = i.invoice_id
    WHERE i.amount_refunded <> coalesce(f.amount, 0)
      AND (p_customers IS NULL OR i.customer_id = ANY (p_customers))
    UNION ALL
    SELECT
        'refunds', 'STUCK', f.customer_id, format('refund %s', f.refund_id), format('%s, and nothing is planned', f.status)
    FROM billing.refund AS f
    WHERE f.ended_at IS NULL AND f.lease_until IS NULL AND f.next_send_at IS NULL AND f.next_lookup_at IS NULL
      AND (p_customers IS NULL OR f.customer_id = ANY (p_customers))
      AND NOT EXISTS (
          SELECT 1 FROM billing.reconciliation_case AS k
          WHERE k.customer_id = f.customer_id AND k.refund_id = f.refund_id AND k.resolved_at IS NULL
      );
END;
$function$;

COMMENT ON FUNCTION billing.check_refunds IS
'More goes back than a payment captured, an invoice miscounts what went back, or a refund waits for nothing.';
