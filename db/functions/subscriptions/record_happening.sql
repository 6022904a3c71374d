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
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
-- p_subscription is the row as it was before the change: its event_seq plus one is the number of this event.
BEGIN
    PERFORM billing.record_happenings(
        ARRAY[
            ROW(
                p_subscription.customer_id, p_subscription.subscription_id, p_subscription.event_seq + 1,
                p_event_type, NULL, NULL, NULL, NULL, p_detail, p_published
            )::billing.happening
        ],
        p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.record_happening IS
'Records the one event of a change that leaves the status as it is.';
