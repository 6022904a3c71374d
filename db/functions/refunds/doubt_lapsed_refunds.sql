CREATE OR REPLACE FUNCTION billing.doubt_lapsed_refunds(
    p_limit integer,
    p_as_of timestamptz
)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      refund (SKIP LOCKED)
-- Writes:     refund
-- Raises:     nothing
-- Idempotent: yes
-- A worker died or froze between its claim and its settle: the money may have gone.
DECLARE
    v_doubted integer;
BEGIN
    WITH lapsed AS MATERIALIZED (
        SELECT f.customer_id, f.refund_id
        FROM billing.refund AS f
        WHERE f.lease_until <= clock_timestamp() AND f.status = 'STARTED'
        ORDER BY f.lease_until
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    )

    UPDATE billing.refund AS f
    SET status = 'UNKNOWN', lease_until = NULL, next_lookup_at = p_as_of
    FROM lapsed AS l
    WHERE f.customer_id = l.customer_id AND f.refund_id = l.refund_id;
    GET DIAGNOSTICS v_doubted = ROW_COUNT;
    RETURN v_doubted;
END;
$function$;

COMMENT ON FUNCTION billing.doubt_lapsed_refunds IS
'Makes refunds UNKNOWN whose claim has lapsed without an answer, to be looked up at once.';
