CREATE OR REPLACE FUNCTION billing_worker.confirm_outbox(
    p_relay text,
    p_results billing.outbox_result[]
)
RETURNS integer
LANGUAGE plpgsql
VOLATILE
SECURITY DEFINER
SET search_path = ''
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
-- Locks:      outbox_lease in order of partition, so that nobody takes one over meanwhile; outbox_event
-- Writes:     outbox_event
-- Raises:     SB101 invalid argument
-- Idempotent: yes for PUBLISHED; a repeated FAILED counts again
DECLARE
    c_tries CONSTANT integer := 8;
    v_held smallint[];
    v_valid billing.outbox_result[];
    v_published integer;
BEGIN
    PERFORM billing.require_relay_name(p_relay);
    PERFORM billing.require_outbox_results(p_results);

    v_held := ARRAY(
        SELECT l.partition
        FROM billing.outbox_lease AS l
        WHERE l.relay = p_relay
          AND l.leased_until > clock_timestamp()
          AND l.partition IN (SELECT r.partition FROM unnest(p_results) AS r)
        ORDER BY l.partition
        FOR NO KEY UPDATE
    );

    -- One result per event, and an acknowledgement outweighs a refusal: the event is on the topic.
    v_valid := ARRAY(
        SELECT DISTINCT ON (r.outbox_event_id) r
        FROM unnest(p_results) AS r
        INNER JOIN billing.outbox_lease AS l ON r.partition = l.partition AND r.lease_epoch = l.lease_epoch
        WHERE l.partition = ANY (v_held)
        ORDER BY r.outbox_event_id, r.outcome = 'PUBLISHED' DESC, r.outcome = 'REJECTED' DESC
    );

    UPDATE billing.outbox_event AS e
    SET published_at = clock_timestamp(), retry_at = NULL
    FROM unnest(v_valid) AS r
    WHERE r.outcome = 'PUBLISHED'
      AND e.customer_id = r.customer_id
      AND e.outbox_event_id = r.outbox_event_id
      AND e.created_at = r.created_at
      AND e.partition = r.partition
      AND e.published_at IS NULL
      AND e.blocked_at IS NULL;
    GET DIAGNOSTICS v_published = ROW_COUNT;

    UPDATE billing.outbox_event AS e
    SET publish_failures = e.publish_failures + 1,
        last_error = left(r.error, 500),
        blocked_at = CASE WHEN r.outcome = 'REJECTED' OR e.publish_failures + 1 >= c_tries THEN clock_timestamp() END,
        retry_at = CASE
            WHEN r.outcome = 'FAILED' AND e.publish_failures + 1 < c_tries
            THEN clock_timestamp() + least(interval '1 minute', interval '1 second' * 2 ^ e.publish_failures)
        END
    FROM unnest(v_valid) AS r
    WHERE r.outcome <> 'PUBLISHED'
      AND e.customer_id = r.customer_id
      AND e.outbox_event_id = r.outbox_event_id
      AND e.created_at = r.created_at
      AND e.partition = r.partition
      AND e.published_at IS NULL
      AND e.blocked_at IS NULL;

    RETURN v_published;
END;
$function$;

COMMENT ON FUNCTION billing_worker.confirm_outbox IS
'Records what became of events that a relay had leased, and returns how many it marked as published. Results under a lease that has lapsed or changed hands are ignored. A rejected event, and one refused eight times, is blocked together with everything later about its aggregate.';
