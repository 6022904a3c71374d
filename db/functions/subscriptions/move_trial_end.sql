CREATE OR REPLACE FUNCTION billing.move_trial_end(
    p_subscription billing.subscription,
    p_trial_end timestamptz,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     subscription, subscription_period, subscription_event
-- Raises:     SB101 not after the present end or absurd, SB303 not in a trial
-- Idempotent: no
DECLARE
    v_anchoring billing.anchoring;
BEGIN
    IF p_subscription.status <> 'TRIALING' OR p_subscription.current_period_kind <> 'TRIAL' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB303',
            MESSAGE = format('subscription %s is not in a trial', p_subscription.subscription_id);
    END IF;
    IF (p_trial_end > greatest(p_subscription.current_period_end, p_as_of)
        AND p_trial_end <= p_as_of + interval '731 days') IS NOT TRUE
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = 'p_trial_end must be after the present end of the trial, and within two years',
            DETAIL = billing.to_rfc3339(p_subscription.current_period_end);
    END IF;

    v_anchoring := billing.anchoring_after_trial(p_subscription, p_subscription.price_id, p_trial_end);
    UPDATE billing.subscription_period AS p
    SET period_end = p_trial_end
    WHERE p.customer_id = p_subscription.customer_id
      AND p.subscription_id = p_subscription.subscription_id
      AND p.period_end = p_subscription.current_period_end;
    UPDATE billing.subscription AS s
    SET current_period_end = p_trial_end,
        next_renewal_at = CASE WHEN s.next_renewal_at IS NOT NULL THEN p_trial_end END,
        anchor_at = v_anchoring.anchor_at,
        anchor_day = v_anchoring.anchor_day,
        period_no = v_anchoring.period_no,
        term_end_at = v_anchoring.term_end_at,
        trial_end_told_at = NULL,
        version = s.version + 1,
        event_seq = s.event_seq + 1
    WHERE s.customer_id = p_subscription.customer_id AND s.subscription_id = p_subscription.subscription_id;
    PERFORM billing.record_happening(
        p_subscription, 'TrialExtended', jsonb_build_object('trialEnd', billing.to_rfc3339(p_trial_end)), false, p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.move_trial_end IS 'Moves the end of a trial, and with it anchor, first renewal and term.';
