CREATE OR REPLACE FUNCTION billing_worker.announce_trial_endings(
    p_limit integer,
    p_as_of timestamptz DEFAULT billing.now(),
    p_notice_days integer DEFAULT 3
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      subscription (SKIP LOCKED)
-- Writes:     subscription, subscription_event, outbox_event
-- Raises:     SB101 bad limit or notice, SB104 p_as_of
-- Idempotent: yes: each end of a trial is told of once; one that is moved is told of again
-- Nobody is told of the end of a trial that was cancelled: nothing will be charged then.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_claimed billing.subscription_key[];
    v_happenings billing.happening[];
BEGIN
    PERFORM billing.require_limit(p_limit);
    PERFORM billing.require_integer(p_notice_days, 'p_notice_days', 0, 60);
    SELECT coalesce(array_agg(ROW(c.customer_id, c.subscription_id)::billing.subscription_key), '{}')
    INTO v_claimed
    FROM (
        SELECT s.customer_id, s.subscription_id
        FROM billing.subscription AS s
        WHERE s.status = 'TRIALING' AND s.current_period_kind = 'TRIAL' AND s.trial_end_told_at IS NULL
          AND NOT s.cancel_at_period_end
          AND s.current_period_end <= v_as_of + make_interval(days => p_notice_days)
        ORDER BY s.current_period_end, s.customer_id, s.subscription_id
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS c;

    UPDATE billing.subscription AS s
    SET trial_end_told_at = v_as_of, version = s.version + 1, event_seq = s.event_seq + 1
    FROM unnest(v_claimed) AS k
    WHERE s.customer_id = k.customer_id AND s.subscription_id = k.subscription_id;

    SELECT array_agg(
        ROW(
            s.customer_id, s.subscription_id, s.event_seq, 'SubscriptionTrialEnding', NULL, NULL, NULL, NULL,
            jsonb_build_object(
                'trialEnd', billing.to_rfc3339(s.current_period_end),
                'row', jsonb_build_object('trial_end_told_at', s.trial_end_told_at)
            ),
            true
        )::billing.happening
    )
    INTO v_happenings
    FROM unnest(v_claimed) AS k
    INNER JOIN billing.subscription AS s
        ON s.customer_id = k.customer_id AND s.subscription_id = k.subscription_id;
    PERFORM billing.record_happenings(v_happenings, v_as_of);
    RETURN cardinality(v_claimed);
END;
$function$;

COMMENT ON FUNCTION billing_worker.announce_trial_endings IS
'Tells the world of trials that end within p_notice_days, each end once. Returns how many; 0 = none.';
