CREATE OR REPLACE FUNCTION billing.doubt_lapsed_attempts(
    p_limit integer,
    p_as_of timestamptz
)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
SET enable_sort = off
AS $function$
-- Locks:      payment_attempt (SKIP LOCKED)
-- Writes:     payment_attempt
-- Raises:     nothing
-- Idempotent: yes
-- A worker died or froze between its claim and its settle: the charge may have happened. Asked at once, sent again
-- only by what the look-ups say. Without sorts, the index by lease is walked however old the statistics are.
DECLARE
    v_doubted integer;
BEGIN
    WITH lapsed AS MATERIALIZED (
        SELECT a.customer_id, a.attempt_id
        FROM billing.payment_attempt AS a
        WHERE a.lease_until <= clock_timestamp() AND a.status = 'STARTED'
        ORDER BY a.lease_until
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    )

    UPDATE billing.payment_attempt AS a
    SET status = 'UNKNOWN', lease_until = NULL, next_lookup_at = p_as_of
    FROM lapsed AS l
    WHERE a.customer_id = l.customer_id AND a.attempt_id = l.attempt_id;
    GET DIAGNOSTICS v_doubted = ROW_COUNT;
    RETURN v_doubted;
END;
$function$;

COMMENT ON FUNCTION billing.doubt_lapsed_attempts IS
'Makes STARTED attempts whose lease has lapsed UNKNOWN, to be looked up at once. Returns how many.';
