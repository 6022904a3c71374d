CREATE OR REPLACE FUNCTION billing.record_happenings(
    p_happenings billing.happening[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; the callers hold the subscriptions
-- Writes:     subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no, but a number that is taken is refused by the key of the log
-- Last step of every operation: payloads show the rows as the transaction leaves them. What stands under "row" in a
-- detail is for the log alone.
BEGIN
    IF p_happenings IS NULL THEN
        RETURN;
    END IF;

    INSERT INTO billing.subscription_event (
        customer_id, subscription_id, event_seq, event_type, from_status, to_status, invoice_id, attempt_id,
        detail, row_changes, actor, as_of
    )
    SELECT
        h.customer_id, h.subscription_id, h.event_seq, h.event_type, h.from_status, h.to_status, h.invoice_id,
        h.attempt_id, coalesce(h.detail - 'row', '{}'), coalesce(h.detail -> 'row', '{}'), billing.actor(), p_as_of
    FROM unnest(p_happenings) AS h
    ORDER BY h.customer_id, h.subscription_id, h.event_seq;

    INSERT INTO billing.outbox_event (
        aggregate_type, aggregate_id, aggregate_seq, customer_id, event_type, payload, occurred_at
    )
    SELECT
        'subscription', h.subscription_id, h.event_seq, h.customer_id, h.event_type,
        billing.event_payload(h, p_as_of), p_as_of
    FROM unnest(p_happenings) AS h
    WHERE h.published
    ORDER BY h.customer_id, h.subscription_id, h.event_seq;
END;
$function$;

COMMENT ON FUNCTION billing.record_happenings IS
'Writes numbered events into the log and, where published, into the outbox with the same numbers.';
