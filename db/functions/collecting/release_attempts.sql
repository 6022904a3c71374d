CREATE OR REPLACE FUNCTION billing.release_attempts(
    p_invoices billing.invoice_key[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      payment_attempt, by the update; invoices are locked by the caller
    -- Writes:     payment_attempt
    -- Raises:     nothing
    -- Idempotent: yes
    -- Without this, an attempt that waits for its next send would wait for ever. One in flight ends with its lease, one
    -- that is UNKNOWN is looked up anyway.
    UPDATE billing.payment_attempt AS a
    SET status = CASE WHEN n.never_executed THEN 'ABANDONED' ELSE 'UNKNOWN' END,
        next_lookup_at = CASE WHEN NOT n.never_executed THEN coalesce(a.next_lookup_at, p_as_of) END,
        ended_at = CASE WHEN n.never_executed THEN p_as_of END
    FROM unnest(p_invoices) AS k
    INNER JOIN billing.payment_attempt AS o ON o.customer_id = k.customer_id AND o.invoice_id = k.invoice_id
    CROSS JOIN LATERAL (SELECT o.refusal_count >= o.send_count AS never_executed) AS n
    WHERE o.status = 'STARTED'
      AND o.lease_until IS NULL
      AND a.customer_id = o.customer_id
      AND a.attempt_id = o.attempt_id;
$function$;

COMMENT ON FUNCTION billing.release_attempts IS
'Takes attempts out of the queue that will not be sent again, because their invoice was closed or their key is old: ABANDONED where every send was refused, else looked up.';
