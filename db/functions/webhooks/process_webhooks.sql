CREATE OR REPLACE FUNCTION billing_worker.process_webhooks(
    p_limit integer,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      webhook_event (SKIP LOCKED) -> as settle_attempts
-- Writes:     webhook_event, reconciliation_case, payment_attempt; as settle_attempts
-- Raises:     SB101 bad limit, SB104 p_as_of
-- Idempotent: yes: what is processed is not taken again
-- One block for the batch; where an event fails, each is tried alone, and the failing one later. At most 50 in a
-- transaction, so that the blocks stay within the cache of sub-transactions.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_claimed bigint[];
    v_event_id bigint;
    v_sqlstate text;
    v_message text;
BEGIN
    PERFORM billing.require_limit(p_limit);
    SELECT coalesce(array_agg(c.webhook_event_id ORDER BY c.webhook_event_id), '{}')
    INTO v_claimed
    FROM (
        SELECT w.webhook_event_id
        FROM billing.webhook_event AS w
        WHERE w.status IN ('RECEIVED', 'UNMATCHED') AND w.next_try_at <= clock_timestamp()
        ORDER BY w.next_try_at
        LIMIT least(p_limit, 50)
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c;
    IF cardinality(v_claimed) = 0 THEN
        RETURN 0;
    END IF;

    BEGIN
        PERFORM billing.process_webhook_batch(v_claimed, v_as_of);
        RETURN cardinality(v_claimed);
    EXCEPTION WHEN data_exception OR integrity_constraint_violation OR deadlock_detected OR SQLSTATE 'SB901'
        OR SQLSTATE 'SB101'
    THEN
        GET STACKED DIAGNOSTICS v_sqlstate = RETURNED_SQLSTATE, v_message = MESSAGE_TEXT;
        RAISE WARNING 'webhooks are processed one by one after % %', v_sqlstate, v_message;
    END;

    FOREACH v_event_id IN ARRAY v_claimed LOOP
        BEGIN
            PERFORM billing.process_webhook_batch(ARRAY[v_event_id], v_as_of);
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR deadlock_detected OR SQLSTATE 'SB901'
            OR SQLSTATE 'SB101'
        THEN
            GET STACKED DIAGNOSTICS v_sqlstate = RETURNED_SQLSTATE, v_message = MESSAGE_TEXT;
            UPDATE billing.webhook_event AS w
            SET failure_count = w.failure_count + 1,
                last_error = left(format('%s %s', v_sqlstate, v_message), 500),
                next_try_at = clock_timestamp() + make_interval(secs => least(300, 2 ^ least(w.failure_count + 1, 9)))
            WHERE w.webhook_event_id = v_event_id;
        END;
    END LOOP;
    RETURN cardinality(v_claimed);
END;
$function$;

COMMENT ON FUNCTION billing_worker.process_webhooks IS
'Processes stored gateway events, at most 50 a call, and returns how many it took up; 0 = nothing waits.';
