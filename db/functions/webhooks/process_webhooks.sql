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
-- Those of one kind, since settling charges and settling refunds each take all of their locks in the one order; where they
-- fail together the first half of them is tried, and so on, until some go or a single one is put off. What comes after
-- those is the next call's: to go on here would lock customers out of order.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_claimed bigint[];
    v_size integer;
    v_sqlstate text;
    v_message text;
BEGIN
    PERFORM billing.require_limit(p_limit);
    SELECT array_agg(k.webhook_event_id ORDER BY k.webhook_event_id)
    INTO v_claimed
    FROM (
        SELECT
            c.webhook_event_id, c.is_refund,
            first_value(c.is_refund) OVER (ORDER BY c.webhook_event_id) AS first_is_refund
        FROM (
            SELECT w.webhook_event_id, (w.payload ? 'refundId') IS TRUE AS is_refund
            FROM billing.webhook_event AS w
            WHERE w.status IN ('RECEIVED', 'UNMATCHED') AND w.next_try_at <= clock_timestamp()
            ORDER BY w.next_try_at
            LIMIT least(p_limit, 50)
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS c
    ) AS k
    WHERE k.is_refund = k.first_is_refund;
    v_size := coalesce(cardinality(v_claimed), 0);

    WHILE v_size > 0 LOOP
        BEGIN
            PERFORM billing.process_webhook_batch(v_claimed[:v_size], v_as_of);
            RETURN v_size;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR deadlock_detected OR SQLSTATE 'SB901'
            OR SQLSTATE 'SB101'
        THEN
            GET STACKED DIAGNOSTICS v_sqlstate = RETURNED_SQLSTATE, v_message = MESSAGE_TEXT;
        END;
        IF v_size = 1 THEN
            UPDATE billing.webhook_event AS w
            SET failure_count = w.failure_count + 1,
                last_error = left(format('%s %s', v_sqlstate, v_message), 500),
                next_try_at = clock_timestamp() + make_interval(secs => least(300, 2 ^ least(w.failure_count + 1, 9)))
            WHERE w.webhook_event_id = v_claimed[1];
            RETURN 1;
        END IF;
        RAISE WARNING 'half of % webhooks is processed after % %', v_size, v_sqlstate, v_message;
        v_size := v_size / 2;
    END LOOP;
    RETURN 0;
END;
$function$;

COMMENT ON FUNCTION billing_worker.process_webhooks IS
'Processes stored gateway events, at most 50 a call, and returns how many it took up; 0 = nothing waits.';
