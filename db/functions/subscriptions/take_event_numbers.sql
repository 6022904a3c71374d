CREATE OR REPLACE FUNCTION billing.take_event_numbers(
    p_happenings billing.happening[]
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; subscriptions are locked by the caller
    -- Writes:     subscription (event_seq, version)
    -- Raises:     nothing
    -- Idempotent: no
    UPDATE billing.subscription AS s
    SET event_seq = h.last_seq, version = s.version + 1
    FROM (
        SELECT x.customer_id, x.subscription_id, max(x.event_seq) AS last_seq
        FROM unnest(p_happenings) AS x
        GROUP BY x.customer_id, x.subscription_id
    ) AS h
    WHERE s.customer_id = h.customer_id AND s.subscription_id = h.subscription_id;
$function$;

COMMENT ON FUNCTION billing.take_event_numbers IS
'Moves event_seq of each subscription to the last number that these events use.';
