CREATE OR REPLACE FUNCTION billing.schedule_price_migration(
    p_plan billing.plan,
    p_effective_from timestamptz,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; subscriptions are locked by the caller
-- Writes:     subscription, subscription_event, outbox_event
-- Raises:     nothing
-- Idempotent: yes
DECLARE
    v_happenings billing.happening[];
BEGIN
    SELECT array_agg(
        ROW(
            s.customer_id, s.subscription_id, s.event_seq + 1, 'PriceChangeNotice', NULL, NULL, NULL, NULL,
            jsonb_build_object(
                'planCode', p_plan.code, 'oldAmount', g.old_amount, 'newAmount', g.new_amount, 'currency', g.currency,
                'effectiveFrom', billing.to_rfc3339(p_effective_from)
            ),
            true
        )::billing.happening
        ORDER BY s.customer_id, s.subscription_id
    )
    INTO v_happenings
    FROM billing.price_migrants(p_plan, p_effective_from) AS g
    INNER JOIN billing.subscription AS s
        ON s.customer_id = g.customer_id AND s.subscription_id = g.subscription_id;

    UPDATE billing.subscription AS s
    SET pending_price_id = g.new_price_id,
        pending_quantity = s.quantity,
        pending_from = p_effective_from,
        version = s.version + 1,
        event_seq = s.event_seq + 1
    FROM billing.price_migrants(p_plan, p_effective_from) AS g
    WHERE s.customer_id = g.customer_id AND s.subscription_id = g.subscription_id;
    PERFORM billing.record_happenings(v_happenings, p_as_of);
END;
$function$;

COMMENT ON FUNCTION billing.schedule_price_migration IS
'Sets the newest price of a plan as pending for its subscribers, and tells each of them.';
