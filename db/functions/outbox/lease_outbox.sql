CREATE OR REPLACE FUNCTION billing_worker.lease_outbox(
    p_relay text,
    p_limit integer,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.outbox_message
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
AS $function$
-- Locks:      outbox_lease, the rows that change hands
-- Writes:     outbox_relay, outbox_lease
-- Raises:     SB101 invalid argument, SB104 p_as_of out of range
-- Idempotent: yes: what is not confirmed is returned again
DECLARE
    v_leases billing.outbox_lease[];
BEGIN
    PERFORM billing.require_relay_name(p_relay);
    PERFORM billing.require_limit(p_limit);
    -- Publication knows the wall clock only (leases, retries); p_as_of is here for the sake of a uniform signature.
    PERFORM billing.require_as_of(p_as_of);

    -- Its events are those of the original, which publishes them itself.
    IF billing.is_foreign_database() THEN
        RETURN;
    END IF;
    v_leases := billing.take_outbox_leases(p_relay);

    RETURN QUERY
    SELECT
        e.outbox_event_id,
        e.created_at,
        e.customer_id,
        e.partition,
        l.lease_epoch,
        e.aggregate_type,
        e.aggregate_id,
        e.aggregate_seq,
        e.event_type,
        e.occurred_at,
        e.payload,
        e.publish_failures
    FROM unnest(v_leases) AS l
    CROSS JOIN LATERAL (
        SELECT o.*
        FROM billing.outbox_event AS o
        WHERE o.partition = l.partition
          AND o.published_at IS NULL
          AND (o.aggregate_type, o.aggregate_id) NOT IN (
              SELECT t.aggregate_type, t.aggregate_id
              FROM billing.outbox_event AS t
              WHERE t.published_at IS NULL
                AND t.publish_failures > 0
                AND (t.blocked_at IS NOT NULL OR t.retry_at > clock_timestamp())
          )
        ORDER BY o.outbox_event_id
        LIMIT 1 + (p_limit - 1) / greatest(1, cardinality(v_leases))
    ) AS e
    ORDER BY e.outbox_event_id
    LIMIT p_limit;
END;
$function$;

COMMENT ON FUNCTION billing_worker.lease_outbox IS
'Takes or renews a fair share of the partitions for a relay, for at least 20 seconds, and returns unpublished events of them in order of id. Call it only after the events of the call before are confirmed or given up: it may hand partitions on to other relays. Events behind a blocked one of the same aggregate are left out.';
