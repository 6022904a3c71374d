CREATE OR REPLACE FUNCTION billing.lift_suspensions(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      resource, by the update; subscriptions and invoices are locked by the caller
-- Writes:     resource, subscription (event_seq), subscription_event, outbox_event
-- Raises:     nothing
-- Idempotent: yes
-- Lifts only what billing imposed, only once nothing is owed for the resource any more, only for an active customer, and
-- not while an administrator has it suspended.
DECLARE
    v_happenings billing.happening[];
BEGIN
    WITH lifted AS (
        UPDATE billing.resource AS r
        SET suspended_by_billing_at = NULL
        FROM (
            SELECT i.customer_id, i.resource_id, max(i.invoice_id) AS invoice_id
            FROM unnest(p_judgements) AS j
            INNER JOIN billing.invoice AS i ON i.customer_id = j.customer_id AND i.invoice_id = j.invoice_id
            WHERE j.verdict = 'APPLIED' AND i.status = 'PAID' AND i.failed_at IS NOT NULL
            GROUP BY i.customer_id, i.resource_id
        ) AS p
        INNER JOIN billing.customer AS c ON c.customer_id = p.customer_id
        WHERE r.customer_id = p.customer_id
          AND r.resource_id = p.resource_id
          AND r.suspended_by_billing_at IS NOT NULL
          AND r.suspended_by_admin_at IS NULL
          AND c.status = 'ACTIVE'
          AND NOT EXISTS (
              SELECT 1
              FROM billing.invoice AS o
              WHERE o.customer_id = r.customer_id AND o.resource_id = r.resource_id AND o.status = 'FAILED'
          )
        RETURNING p.customer_id, p.invoice_id
    )
    SELECT array_agg(
        ROW(
            s.customer_id, s.subscription_id, s.event_seq + 1, 'ResourceResumed', NULL, NULL, l.invoice_id, NULL,
            jsonb_build_object('by', 'billing'), true
        )::billing.happening
        ORDER BY s.customer_id, s.subscription_id
    )
    INTO v_happenings
    FROM lifted AS l
    INNER JOIN billing.invoice AS i ON i.customer_id = l.customer_id AND i.invoice_id = l.invoice_id
    INNER JOIN billing.subscription AS s ON s.customer_id = i.customer_id AND s.subscription_id = i.subscription_id;

    PERFORM billing.take_event_numbers(v_happenings);
    PERFORM billing.record_happenings(v_happenings, p_as_of);
END;
$function$;

COMMENT ON FUNCTION billing.lift_suspensions IS
'Lifts billing''s suspension of resources whose last failed invoice was paid late.';
