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
-- The anchor becomes the end of what was left, so that boundary 0 is that end; a fixed term keeps its number of periods.
-- A pause of no length leaves no row and moves nothing.
DECLARE
    c_at CONSTANT timestamptz := greatest(p_as_of, p_subscription.current_period_start);
    c_end CONSTANT timestamptz := c_at + make_interval(secs => p_subscription.paused_seconds_left);
    v_anchoring billing.anchoring := billing.anchoring_after_pause(p_subscription, c_end);
BEGIN
    IF c_at = p_subscription.current_period_start THEN
        v_anchoring := ROW(
            p_subscription.anchor_at, p_subscription.anchor_day, p_subscription.period_no, p_subscription.term_end_at
        );
    END IF;
    PERFORM billing.reopen_paused_period(p_subscription, c_at, c_end);

    UPDATE billing.subscription AS s
    SET status = 'ACTIVE',
        current_period_kind = t.kind,
        current_period_start = t.period_start,
        current_period_end = t.period_end,
        next_renewal_at = t.period_end,
        anchor_at = v_anchoring.anchor_at,
        anchor_day = v_anchoring.anchor_day,
        period_no = v_anchoring.period_no,
        term_end_at = v_anchoring.term_end_at,
        paused_seconds_left = NULL,
        paused_seconds_total = NULL,
        paused_invoice_id = NULL,
        version = s.version + 1,
        event_seq = s.event_seq + 1
    FROM (
        SELECT p.kind, p.period_start, p.period_end
        FROM billing.subscription_period AS p
        WHERE p.customer_id = p_subscription.customer_id AND p.subscription_id = p_subscription.subscription_id
        ORDER BY p.period_start DESC
        LIMIT 1
    ) AS t
    WHERE s.customer_id = p_subscription.customer_id AND s.subscription_id = p_subscription.subscription_id;
    PERFORM billing.record_happening(p_subscription, 'SubscriptionResumed', NULL, true, p_as_of);
    IF c_end = c_at THEN
        PERFORM billing.renew_claimed(
            ARRAY[ROW(p_subscription.customer_id, p_subscription.subscription_id)::billing.subscription_key],
            p_as_of, NULL
        );
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.resume_now IS 'Ends a pause, continues with the paid time that was left, and opens the next period where none was.';
