CREATE OR REPLACE FUNCTION billing_ops.replay_event(
    p_event_id bigint
)
RETURNS SETOF billing.outbox_event
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = ''
AS $function$
-- Locks:      outbox_event, one row
-- Writes:     outbox_event
-- Raises:     SB101 invalid argument, SB251 unknown event, SB351 not blocked
-- Idempotent: no: a second call finds the event no longer blocked
DECLARE
    v_event billing.outbox_event;
BEGIN
    IF p_event_id IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'SB101', MESSAGE = 'p_event_id must not be NULL';
    END IF;

    -- By id alone this walks the partitions; an operator's call may.
    SELECT e.*
    INTO v_event
    FROM billing.outbox_event AS e
    WHERE e.outbox_event_id = p_event_id
    FOR NO KEY UPDATE;

    IF NOT found THEN
        RAISE EXCEPTION USING ERRCODE = 'SB251', MESSAGE = format('event %s does not exist', p_event_id);
    END IF;
    IF v_event.blocked_at IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB351',
            MESSAGE = format('event %s is not blocked', p_event_id),
            DETAIL = CASE
                WHEN v_event.published_at IS NULL THEN 'A relay has it on its list.'
                ELSE format('It was published at %s.', billing.to_rfc3339(v_event.published_at))
            END;
    END IF;

    RETURN QUERY
    UPDATE billing.outbox_event AS e
    SET blocked_at = NULL,
        publish_failures = 0,
        replayed_at = clock_timestamp(),
        replayed_by = billing.actor()
    WHERE e.customer_id = v_event.customer_id
      AND e.outbox_event_id = v_event.outbox_event_id
      AND e.created_at = v_event.created_at
    RETURNING e.*;
END;
$function$;

COMMENT ON FUNCTION billing_ops.replay_event IS
'Hands a blocked event back to the relays, for an operator who has removed the cause, and returns it. What it held back follows it.';
