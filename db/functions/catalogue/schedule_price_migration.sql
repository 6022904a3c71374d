CREATE OR REPLACE FUNCTION billing.schedule_price_migration(
    p_migrants billing.price_migrant[],
    p_plan_code text,
    p_effective_from timestamptz,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing; subscriptions are locked by the caller
-- Writes:     subscription, subscription_event, outbox_event
-- Raises:     nothing
-- Idempotent: no
DECLARE
    v_happenings billing.happening[];
BEGIN
    UPDATE billing.subscription AS s
    SET migration_price_id = g.new_price_id,
        migration_from = p_effective_from,
        version = s.version + 1,
        event_seq = s.event_seq + 1
    FROM unnest(p_migrants) AS g
    WHERE s.customer_id = g.customer_id AND s.subscription_id = g.subscription_id;

    SELECT array_agg(
        ROW(
            s.customer_id, s.subscription_id, s.event_seq, 'PriceChangeNotice', NULL, NULL, NULL, NULL,
            jsonb_build_object(
                'planCode', p_plan_code, 'oldAmount', g.old_amount, 'newAmount', g.new_amount, 'currency', g.currency,
                'effectiveFrom', billing.to_rfc3339(p_effective_from),
                'row', jsonb_build_object('migration_price_id', g.new_price_id, 'migration_from', p_effective_from)
            ),
            true
        )::billing.happening
        ORDER BY s.customer_id, s.subscription_id
    )
    INTO v_happenings
    FROM unnest(p_migrants) AS g
    INNER JOIN billing.subscription AS s
        ON s.customer_id = g.customer_id AND s.subscription_id = g.subscription_id;
    PERFORM billing.record_happenings(v_happenings, p_as_of);
END;
$function$;

COMMENT ON FUNCTION billing.schedule_price_migration IS
'Sets the new price of a plan for subscriptions that are locked, and tells each of them.';
