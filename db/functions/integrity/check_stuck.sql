CREATE OR REPLACE FUNCTION billing.check_stuck(
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
        'stuck', 'STUCK', a.customer_id, format('attempt %s', a.attempt_id), format('%s, lease lapsed at %s', a.status, a.lease_until)
    FROM billing.payment_attempt AS a
    WHERE a.lease_until < clock_timestamp() - interval '1 hour' AND a.status = 'STARTED'
      AND (p_customers IS NULL OR a.customer_id = ANY (p_customers))
    UNION ALL
    SELECT
        'stuck', 'STUCK', a.customer_id, format('attempt %s', a.attempt_id), format('%s, and nothing is planned', a.status)
    FROM billing.payment_attempt AS a
    INNER JOIN billing.invoice AS i ON i.customer_id = a.customer_id AND i.invoice_id = a.invoice_id
    WHERE a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
      AND a.lease_until IS NULL AND a.next_lookup_at IS NULL AND i.next_attempt_at IS NULL AND (p_customers IS NULL OR a.customer_id = ANY (p_customers))
      AND NOT EXISTS (
          SELECT 1 FROM billing.reconciliation_case AS k
          WHERE k.customer_id = a.customer_id AND k.attempt_id = a.attempt_id AND k.resolved_at IS NULL
      )
    UNION ALL
    SELECT
        'stuck', 'STUCK', w.customer_id, format('webhook %s', w.webhook_event_id), format('%s since %s', w.status, w.received_wall_at)
    FROM billing.webhook_event AS w
    WHERE w.status IN ('RECEIVED', 'UNMATCHED') AND w.received_wall_at < clock_timestamp() - interval '2 hours'
      AND (p_customers IS NULL OR w.customer_id IS NULL OR w.customer_id = ANY (p_customers))
    UNION ALL
    SELECT
        'stuck', 'STUCK', i.customer_id, format('invoice %s', i.invoice_id), 'open, and nothing is planned for it'
    FROM billing.invoice AS i
    WHERE i.status = 'OPEN' AND (i.drives_status OR i.kind = 'MANUAL') AND i.next_attempt_at IS NULL
      AND i.dunning_ends_at IS NULL AND (p_customers IS NULL OR i.customer_id = ANY (p_customers))
      AND NOT EXISTS (
          SELECT 1 FROM billing.payment_attempt AS a
          WHERE a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
            AND a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
      )
      AND NOT EXISTS (
          SELECT 1 FROM billing.reconciliation_case AS k
          WHERE k.customer_id = i.customer_id AND k.invoice_id = i.invoice_id AND k.resolved_at IS NULL
      );
END;
$function$;

COMMENT ON FUNCTION billing.check_stuck IS
'Something waits that nothing will move: a lapsed lease that nobody swept, an open attempt that is neither leased nor due nor looked up, an old webhook.';
