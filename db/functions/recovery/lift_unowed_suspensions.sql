CREATE OR REPLACE FUNCTION billing.lift_unowed_suspensions(
    p_subscriptions billing.subscription_key[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      resource, by the update; the caller holds the subscriptions, one per resource
-- Writes:     resource, subscription (event_seq), subscription_event, outbox_event
-- Raises:     nothing
-- Idempotent: yes
-- Lifts only what billing imposed, only once nothing that was given up is owed for the resource any more, only for an
-- active customer, and not while an administrator has it suspended: their lift asks again.
DECLARE
    v_happenings billing.happening[];
BEGIN
    IF cardinality(p_subscriptions) = 0 THEN
        RETURN;
    END IF;

    WITH lifted AS (
        UPDATE billing.resource AS r
        SET suspended_by_billing_at = NULL
        FROM unnest(p_subscriptions) AS k
        INNER JOIN billing.subscription AS s ON s.customer_id = k.customer_id AND s.subscription_id = k.subscription_id
        INNER JOIN billing.customer AS c ON c.customer_id = k.customer_id
        WHERE r.customer_id = s.customer_id
          AND r.resource_id = s.resource_id
          AND r.suspended_by_billing_at IS NOT NULL
          AND r.suspended_by_admin_at IS NULL
          AND c.status = 'ACTIVE'
          AND NOT EXISTS (
              SELECT 1
              FROM billing.invoice AS o
              WHERE o.customer_id = r.customer_id AND o.resource_id = r.resource_id AND o.status = 'FAILED'
          )
        RETURNING s.customer_id, s.subscription_id
    )
    SELECT array_agg(
        ROW(
            s.customer_id, s.subscription_id, s.event_seq + 1, 'ResourceResumed', NULL, NULL, NULL, NULL,
            jsonb_build_object('by', 'billing'), true
        )::billing.happening
        ORDER BY s.customer_id, s.subscription_id
    )
    INTO v_happenings
    FROM lifted AS l
    INNER JOIN billing.subscription AS s ON s.customer_id = l.customer_id AND s.subscription_id = l.subscription_id;
    IF v_happenings IS NULL THEN
        RETURN;
    END IF;

    PERFORM billing.take_event_numbers(v_happenings);
    PERFORM billing.record_happenings(v_happenings, p_as_of);
END;
$function$;

COMMENT ON FUNCTION billing.lift_unowed_suspensions IS
'Lifts what billing has suspended for debts, where none is left.';
