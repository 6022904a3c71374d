CREATE OR REPLACE FUNCTION billing.require_outbox_results(
    p_results billing.outbox_result[]
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 a malformed batch
-- Idempotent: yes
DECLARE
    v_position bigint;
BEGIN
    IF p_results IS NULL OR cardinality(p_results) > 10000 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_results must be an array of at most 10000 results';
    END IF;

    SELECT r.position
    INTO v_position
    FROM unnest(p_results) WITH ORDINALITY AS r (
        outbox_event_id, created_at, customer_id, partition, lease_epoch, outcome, error, position
    )
    WHERE r.outbox_event_id IS NULL
       OR r.created_at IS NULL
       OR r.customer_id IS NULL
       OR r.partition IS NULL
       OR r.lease_epoch IS NULL
       OR r.outcome IS NULL
       OR r.outcome NOT IN ('PUBLISHED', 'FAILED', 'REJECTED')
       OR (r.outcome <> 'PUBLISHED' AND r.error IS NULL)
    ORDER BY r.position
    LIMIT 1;

    IF found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('result %s of p_results is malformed', v_position),
            HINT = 'Every field is required, error only unless PUBLISHED; outcome is PUBLISHED, FAILED or REJECTED.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_outbox_results IS 'Raises SB101 unless the results are well-formed and at most 10000.';
