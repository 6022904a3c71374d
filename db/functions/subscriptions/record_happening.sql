CREATE OR REPLACE FUNCTION billing.record_happening(
    p_subscription billing.subscription,
    p_event_type text,
    p_detail jsonb,
    p_published boolean,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
-- p_subscription is the row as it was before the change: its event_seq plus one is the number of this event, and what
-- differs now is what the log keeps. The number of the period is always kept, because timeline rows count on from it.
DECLARE
    v_after billing.subscription;
    v_changes jsonb;
BEGIN
    SELECT s.*
    INTO STRICT v_after
    FROM billing.subscription AS s
    WHERE s.customer_id = p_subscription.customer_id AND s.subscription_id = p_subscription.subscription_id;

    SELECT jsonb_object_agg(a.key, a.value)
    INTO v_changes
    FROM jsonb_each(billing.logged_row(v_after)) AS a
    WHERE a.value IS DISTINCT FROM billing.logged_row(p_subscription) -> a.key OR a.key = 'period_no';

    PERFORM billing.record_happenings(
        ARRAY[
            ROW(
                p_subscription.customer_id, p_subscription.subscription_id, p_subscription.event_seq + 1, p_event_type,
                CASE WHEN v_after.status <> p_subscription.status THEN p_subscription.status END,
                CASE WHEN v_after.status <> p_subscription.status THEN v_after.status END,
                NULL, NULL, coalesce(p_detail, '{}') || jsonb_build_object('row', v_changes), p_published
            )::billing.happening
        ],
        p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.record_happening IS
'Records the one event of a change that has been written to one subscription, with the columns that it changed.';
