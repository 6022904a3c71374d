CREATE OR REPLACE FUNCTION billing.require_results(
    p_results billing.charge_result[]
)
RETURNS void
LANGUAGE plpgsql
IMMUTABLE
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB101 not an array of 1 to 10000 results, or a result that cannot be read
-- Idempotent: yes
DECLARE
    v_bad record;
BEGIN
    IF (cardinality(p_results) BETWEEN 0 AND 10000) IS NOT TRUE THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_results must be an array of at most 10000 results';
    END IF;
    SELECT r.*
    INTO v_bad
    FROM unnest(p_results) WITH ORDINALITY AS r
    WHERE r.customer_id IS NULL
       OR r.attempt_id IS NULL
       OR (r.outcome IN (
           'SUCCEEDED', 'DECLINED', 'REQUIRES_ACTION', 'PROCESSING', 'NOT_ATTEMPTED', 'UNKNOWN', 'NOT_FOUND'
       )) IS NOT TRUE
       OR (r.source IN ('SEND', 'LOOKUP', 'WEBHOOK')) IS NOT TRUE
       OR (r.outcome = 'NOT_FOUND' AND r.source <> 'LOOKUP')
       OR (r.outcome = 'NOT_ATTEMPTED' AND r.source <> 'SEND')
       OR (r.source = 'WEBHOOK' AND r.outcome NOT IN ('SUCCEEDED', 'DECLINED'))
       OR (r.outcome = 'DECLINED' AND r.code IS NULL)
       OR (r.amount <= 0)
       OR (r.retry_after NOT BETWEEN 0 AND 31622400)
    ORDER BY r.ordinality
    LIMIT 1;
    IF found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('result %s, for attempt %s, cannot be read', v_bad.ordinality, coalesce(v_bad.attempt_id::text, 'NULL')),
            DETAIL = billing.quoted(v_bad::text),
            HINT = 'outcome and source must be known, NOT_FOUND comes from a LOOKUP, NOT_ATTEMPTED from a SEND, a WEBHOOK is '
            'definite, DECLINED has a code, amounts are positive, retry_after is at most 366 days.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_results IS 'Refuses results that settle_attempts cannot read, with SB101.';
