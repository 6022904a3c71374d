CREATE OR REPLACE FUNCTION billing.switch_suspension(
    p_resource billing.resource,
    p_suspend boolean,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      subscription, one row -> resource, by the update -> customer
-- Writes:     resource, subscription, customer, subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: yes
-- Told as an event of the last subscription of the resource, so that it stands in order with its others.
DECLARE
    c_event_type CONSTANT text := CASE WHEN p_suspend THEN 'ResourceSuspended' ELSE 'ResourceResumed' END;
    c_detail CONSTANT jsonb := jsonb_build_object('by', 'admin');
    v_subscription billing.subscription;
BEGIN
    SELECT s.*
    INTO v_subscription
    FROM billing.subscription AS s
    WHERE s.customer_id = p_resource.customer_id AND s.resource_id = p_resource.resource_id
    ORDER BY s.subscription_id DESC
    LIMIT 1
    FOR NO KEY UPDATE;

    UPDATE billing.resource AS r
    SET suspended_by_admin_at = CASE WHEN p_suspend THEN p_as_of END
    WHERE r.customer_id = p_resource.customer_id
      AND r.resource_id = p_resource.resource_id
      AND (r.suspended_by_admin_at IS NULL) = p_suspend;
    IF NOT found THEN
        RETURN;
    END IF;
    IF v_subscription.subscription_id IS NULL THEN
        PERFORM billing.record_customer_event(
            p_resource.customer_id, c_event_type,
            c_detail || jsonb_build_object('resourceRef', p_resource.external_ref), p_as_of
        );
        RETURN;
    END IF;

    UPDATE billing.subscription AS s
    SET version = s.version + 1, event_seq = s.event_seq + 1
    WHERE s.customer_id = v_subscription.customer_id AND s.subscription_id = v_subscription.subscription_id;
    PERFORM billing.record_happening(v_subscription, c_event_type, c_detail, true, p_as_of);
    IF NOT p_suspend THEN
        PERFORM billing.lift_unowed_suspensions(
            ARRAY[ROW(v_subscription.customer_id, v_subscription.subscription_id)::billing.subscription_key], p_as_of
        );
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.switch_suspension IS
'Imposes or lifts an administrator''s suspension of a resource, and tells of it where that changes anything.';
