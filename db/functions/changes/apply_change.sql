CREATE OR REPLACE FUNCTION billing.apply_change(
    p_customer_id bigint,
    p_change_id bigint,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     subscription_change, subscription_period, subscription, subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
-- It takes the place of a change that was set for the end of the period. A price migration of the seller stays, unless
-- the plan is another one now.
DECLARE
    v_change billing.subscription_change;
    v_before billing.subscription;
    v_anchoring billing.anchoring;
    v_period billing.subscription_period;
BEGIN
    UPDATE billing.subscription_change AS c
    SET status = 'APPLIED', ended_at = p_as_of
    WHERE c.customer_id = p_customer_id AND c.change_id = p_change_id
    RETURNING c.* INTO STRICT v_change;

    SELECT s.*
    INTO STRICT v_before
    FROM billing.subscription AS s
    WHERE s.customer_id = p_customer_id AND s.subscription_id = v_change.subscription_id;

    v_anchoring := billing.anchoring_of_change(v_before, v_change);
    IF v_change.opens_period THEN
        v_period := billing.open_changed_period(v_before, v_change, v_anchoring);
    END IF;
    UPDATE billing.subscription AS s
    SET price_id = v_change.to_price_id,
        quantity = v_change.to_quantity,
        anchor_at = v_anchoring.anchor_at,
        anchor_day = v_anchoring.anchor_day,
        period_no = v_anchoring.period_no,
        term_end_at = v_anchoring.term_end_at,
        current_period_start = coalesce(v_period.period_start, s.current_period_start),
        current_period_end = coalesce(v_period.period_end, s.current_period_end),
        next_renewal_at = CASE WHEN s.next_renewal_at IS NOT NULL THEN coalesce(v_period.period_end, s.next_renewal_at) END,
        pending_price_id = NULL,
        pending_quantity = NULL,
        pending_from = NULL,
        migration_price_id = CASE WHEN m.stays THEN s.migration_price_id END,
        migration_from = CASE WHEN m.stays THEN s.migration_from END,
        version = s.version + 1,
        event_seq = s.event_seq + 1
    FROM (
        SELECT f.plan_id = t.plan_id AS stays
        FROM billing.price AS f
        CROSS JOIN billing.price AS t
        WHERE f.price_id = v_change.from_price_id AND t.price_id = v_change.to_price_id
    ) AS m
    WHERE s.customer_id = p_customer_id AND s.subscription_id = v_change.subscription_id;

    PERFORM billing.record_happening(
        v_before, 'SubscriptionPlanChanged',
        (SELECT jsonb_build_object('fromPlanCode', pl.code, 'fromQuantity', v_change.from_quantity)
         FROM billing.price AS pr
         INNER JOIN billing.plan AS pl ON pl.plan_id = pr.plan_id
         WHERE pr.price_id = v_change.from_price_id),
        true, p_as_of
    );
END;
$function$;

COMMENT ON FUNCTION billing.apply_change IS 'Lets a change take effect: new price and quantity, and a new period where the interval changes.';
