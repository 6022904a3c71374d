CREATE OR REPLACE FUNCTION billing.event_payload(
    p_happening billing.happening,
    p_as_of timestamptz
)
RETURNS jsonb
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- The shapes stand in docs/events/*.schema.json.
DECLARE
    v_payload jsonb;
BEGIN
    SELECT jsonb_build_object(
        'customerId', s.customer_id,
        'subscriptionId', s.subscription_id,
        'resourceRef', r.external_ref,
        'occurredAt', billing.to_rfc3339(p_as_of),
        'version', s.version
    ) || CASE
        WHEN p_happening.event_type LIKE 'Subscription%' THEN jsonb_build_object(
            'planCode', p.code,
            'quantity', s.quantity,
            'status', s.status,
            'currentPeriodStart', billing.to_rfc3339(s.current_period_start),
            'currentPeriodEnd', billing.to_rfc3339(s.current_period_end)
        )
        WHEN p_happening.event_type LIKE 'Invoice%' THEN (
            SELECT billing.invoice_payload(i)
            FROM billing.invoice AS i
            WHERE i.customer_id = p_happening.customer_id AND i.invoice_id = p_happening.invoice_id
        )
        ELSE '{}'
    END
    INTO STRICT v_payload
    FROM billing.subscription AS s
    INNER JOIN billing.resource AS r ON r.customer_id = s.customer_id AND r.resource_id = s.resource_id
    INNER JOIN billing.price AS pr ON pr.price_id = s.price_id
    INNER JOIN billing.plan AS p ON p.plan_id = pr.plan_id
    WHERE s.customer_id = p_happening.customer_id AND s.subscription_id = p_happening.subscription_id;

    RETURN v_payload || coalesce(p_happening.detail - 'row', '{}');
END;
$function$;

COMMENT ON FUNCTION billing.event_payload IS
'What the world is told about one event: common part, the subscription or the invoice, and the detail of the event.';
