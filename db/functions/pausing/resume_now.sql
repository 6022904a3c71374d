CREATE OR REPLACE FUNCTION billing.resume_now(
    p_subscription billing.subscription,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      credit_balance where a period is opened; the caller holds the subscription
-- Writes:     subscription, subscription_period, subscription_event, outbox_event; as renew_claimed
-- Raises:     nothing of its own
-- Idempotent: no
-- The anchor becomes the end of what was left, so that boundary 0 is that end. The end of a fixed term keeps its number
-- of periods. A pause of no length leaves no row.
DECLARE
    c_at CONSTANT timestamptz := greatest(p_as_of, p_subscription.current_period_start);
    c_end CONSTANT timestamptz := c_at + make_interval(secs => p_subscription.paused_seconds_left);
    v_tail billing.subscription_period;
BEGIN
    PERFORM billing.cut_periods(p_subscription.customer_id, p_subscription.subscription_id, c_at);
    IF c_end > c_at THEN
        PERFORM billing.append_period(
            p_subscription.customer_id, p_subscription.subscription_id, c_at, c_end, 'BILLED',
            p_subscription.paused_invoice_id, p_subscription.event_seq + 1
        );
    END IF;
    SELECT p.*
    INTO STRICT v_tail
    FROM billing.subscription_period AS p
    WHERE p.customer_id = p_subscription.customer_id AND p.subscription_id = p_subscription.subscription_id
    ORDER BY p.period_start DESC
    LIMIT 1;

    UPDATE billing.subscription AS s
    SET status = 'ACTIVE',
        current_period_kind = v_tail.kind,
        current_period_start = v_tail.period_start,
        current_period_end = v_tail.period_end,
        next_renewal_at = v_tail.period_end,
        anchor_at = c_end AT TIME ZONE s.time_zone,
        anchor_day = NULL,
        period_no = 0,
        term_end_at = billing.moved_term_end(s, c_end),
        paused_seconds_left = NULL,
        paused_seconds_total = NULL,
        paused_invoice_id = NULL,
        version = s.version + 1,
        event_seq = s.event_seq + 1
    WHERE s.customer_id = p_subscription.customer_id AND s.subscription_id = p_subscription.subscription_id;
    PERFORM billing.record_happenings(
        ARRAY[
            ROW(
                p_subscription.customer_id, p_subscription.subscription_id, p_subscription.event_seq + 1,
                'SubscriptionResumed', 'PAUSED', 'ACTIVE', NULL, NULL, NULL, true
            )::billing.happening
        ],
        p_as_of
    );
    IF c_end = c_at THEN
        PERFORM billing.renew_claimed(
            ARRAY[ROW(p_subscription.customer_id, p_subscription.subscription_id)::billing.subscription_key],
            p_as_of, NULL
        );
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.resume_now IS 'Ends a pause, continues with the paid time that was left, and opens the next period where none was.';
