CREATE OR REPLACE FUNCTION billing.follow_payment_method(
    p_customer_id bigint,
    p_invoice_ids bigint[],
    p_due_with bigint,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; lock_open_invoices came before
    -- Writes:     invoice
    -- Raises:     nothing
    -- Idempotent: yes
    -- The gateway account stands on the invoice, because attempts are claimed per account. Invoices with an open
    -- attempt stay as they are, and those whose money a person has to look at are not made due.
    UPDATE billing.invoice AS i
    SET gateway_account_id = n.gateway_account_id,
        next_attempt_at = CASE WHEN n.is_due THEN least(i.next_attempt_at, p_as_of) ELSE i.next_attempt_at END,
        lane = CASE WHEN n.is_due THEN 'INTERACTIVE' ELSE i.lane END
    FROM (
        SELECT
            o.invoice_id,
            m.gateway_account_id,
            coalesce(m.payment_method_id = p_due_with AND m.blocked_at IS NULL, false)
            AND NOT EXISTS (
                SELECT 1
                FROM billing.reconciliation_case AS c
                WHERE c.customer_id = o.customer_id AND c.invoice_id = o.invoice_id AND c.resolved_at IS NULL
            ) AS is_due
        FROM billing.invoice AS o
        LEFT JOIN billing.subscription AS s
            ON s.customer_id = o.customer_id AND s.subscription_id = o.subscription_id
        LEFT JOIN LATERAL billing.usable_method(
            o.customer_id, coalesce(o.payment_method_id, s.payment_method_id)
        ) AS m ON true
        WHERE o.customer_id = p_customer_id
          AND o.invoice_id = ANY (p_invoice_ids)
          AND o.status = 'OPEN'
          AND NOT EXISTS (
              SELECT 1
              FROM billing.payment_attempt AS a
              WHERE a.customer_id = o.customer_id AND a.invoice_id = o.invoice_id
                AND a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
          )
    ) AS n
    WHERE i.customer_id = p_customer_id
      AND i.invoice_id = n.invoice_id
      AND (n.is_due OR i.gateway_account_id IS DISTINCT FROM n.gateway_account_id);
$function$;

COMMENT ON FUNCTION billing.follow_payment_method IS
'Rewrites the gateway account of locked open invoices to that of the method they are to be paid with, and makes due at once those which p_due_with would pay; NULL makes none due.';
