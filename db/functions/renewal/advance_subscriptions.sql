CREATE OR REPLACE FUNCTION billing.advance_subscriptions(
    p_renewals billing.renewal[],
    p_run_id bigint
)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; claimed before
-- Writes:     subscription
-- Raises:     SB901 unless every planned row was advanced
-- Idempotent: no
-- What has taken effect waits no longer; the seller's new price of a plan that was left never will.
DECLARE
    v_advanced integer;
    v_planned integer;
BEGIN
    UPDATE billing.subscription AS s
    SET status = r.to_status,
        price_id = CASE r.verdict WHEN 'RENEW' THEN r.price_id ELSE s.price_id END,
        quantity = CASE r.verdict WHEN 'RENEW' THEN r.quantity ELSE s.quantity END,
        (pending_price_id, pending_quantity, pending_from) = (
            SELECT s.pending_price_id, s.pending_quantity, s.pending_from
            WHERE (r.verdict = 'RENEW' AND s.pending_from <= r.period_start) IS NOT TRUE
        ),
        (migration_price_id, migration_from) = (
            SELECT s.migration_price_id, s.migration_from
            WHERE (
                r.verdict = 'RENEW' AND (s.migration_from <= r.period_start OR r.from_plan_code <> r.plan_code)
            ) IS NOT TRUE
        ),
        anchor_at = CASE r.verdict WHEN 'RENEW' THEN r.anchor_at ELSE s.anchor_at END,
        anchor_day = CASE
            WHEN r.verdict = 'RENEW' AND r.from_plan_code IS NOT NULL
            THEN (billing.anchoring_at_renewal(s, r.price_id, r.period_start)).anchor_day
            ELSE s.anchor_day
        END,
        term_end_at = CASE
            WHEN r.verdict = 'RENEW' AND r.from_plan_code IS NOT NULL
            THEN (billing.anchoring_at_renewal(s, r.price_id, r.period_start)).term_end_at
            ELSE s.term_end_at
        END,
        period_no = CASE r.verdict WHEN 'RENEW' THEN r.period_no ELSE s.period_no END,
        current_period_kind = CASE r.verdict
            WHEN 'RENEW' THEN 'BILLED' WHEN 'PAUSE' THEN 'PAUSED' ELSE s.current_period_kind
        END,
        current_period_start = CASE r.verdict WHEN 'REST' THEN s.current_period_start ELSE r.period_start END,
        current_period_end = CASE r.verdict
            WHEN 'RENEW' THEN r.period_end WHEN 'PAUSE' THEN 'infinity' ELSE s.current_period_end
        END,
        next_renewal_at = r.next_renewal_at,
        pause_at_period_end = s.pause_at_period_end AND r.verdict <> 'PAUSE',
        paused_seconds_left = CASE r.verdict WHEN 'PAUSE' THEN 0 ELSE s.paused_seconds_left END,
        catch_up_run_id = p_run_id,
        catch_up_periods = CASE WHEN s.catch_up_run_id = p_run_id THEN s.catch_up_periods + 1 ELSE 1 END,
        version = s.version + 1,
        event_seq = s.event_seq + r.event_count
    FROM unnest(p_renewals) AS r
    WHERE s.customer_id = r.customer_id
      AND s.subscription_id = r.subscription_id
      AND s.version = r.version
      AND r.verdict IN ('RENEW', 'PAUSE', 'REST');
    GET DIAGNOSTICS v_advanced = ROW_COUNT;

    SELECT count(*) INTO v_planned FROM unnest(p_renewals) AS r WHERE r.verdict IN ('RENEW', 'PAUSE', 'REST');
    IF v_advanced <> v_planned THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB901',
            MESSAGE = format('%s of %s subscriptions were advanced', v_advanced, v_planned);
    END IF;
    RETURN v_advanced;
END;
$function$;

COMMENT ON FUNCTION billing.advance_subscriptions IS
'Last step of a renewal: moves each subscription to its new period, and asserts that none was missed.';
