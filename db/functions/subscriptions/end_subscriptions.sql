CREATE OR REPLACE FUNCTION billing.end_subscriptions(
    p_endings billing.ending[],
    p_as_of timestamptz
)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      invoice (open ones, in id order) -> payment_attempt -> credit_balance; subscriptions are locked by the caller
-- Writes:     invoice, payment_attempt, credit_entry, credit_balance, subscription_change, pending_line,
--             subscription_period, subscription, resource, subscription_event, outbox_event
-- Raises:     SB302 already ended, SB303 transition not allowed, SB901 a subscription was missed
-- Idempotent: no
-- The one way in which subscriptions end: by a caller, at a boundary, with their term, after dunning, or when a
-- checkout is restarted. Nothing is attempted afterwards; a charge in flight is looked up, never sent again.
DECLARE
    v_closed billing.closed_invoice[];
    v_moves billing.status_move[];
    v_ended integer;
BEGIN
    IF cardinality(p_endings) = 0 THEN
        RETURN 0;
    END IF;
    v_moves := ARRAY(
        SELECT ROW(s.customer_id, s.subscription_id, s.status, e.to_status)::billing.status_move
        FROM unnest(p_endings) AS e
        INNER JOIN billing.subscription AS s
            ON s.customer_id = e.customer_id AND s.subscription_id = e.subscription_id
    );
    v_closed := billing.close_open_invoices(p_endings, p_as_of);
    PERFORM billing.reopen_pending_lines(
        ARRAY(SELECT ROW(c.customer_id, c.invoice_id)::billing.invoice_key FROM unnest(v_closed) AS c WHERE c.status = 'VOID')
    );
    PERFORM billing.drop_waiting_changes(p_endings, p_as_of);
    PERFORM billing.cut_ended_periods(p_endings);

    UPDATE billing.subscription AS s
    SET status = e.to_status,
        ended_at = e.ended_at,
        end_reason = e.reason,
        current_period_kind = t.kind,
        current_period_start = t.period_start,
        current_period_end = t.period_end,
        next_renewal_at = NULL,
        past_due_since = NULL,
        access_until = NULL,
        parked_at = NULL,
        park_reason = NULL,
        pending_price_id = NULL,
        pending_quantity = NULL,
        pending_from = NULL,
        migration_price_id = NULL,
        migration_from = NULL,
        pause_at_period_end = false,
        version = s.version + 1
    FROM unnest(p_endings) AS e
    LEFT JOIN LATERAL (
        SELECT p.kind, p.period_start, p.period_end
        FROM billing.subscription_period AS p
        WHERE p.customer_id = e.customer_id AND p.subscription_id = e.subscription_id
        ORDER BY p.period_start DESC
        LIMIT 1
    ) AS t ON true
    WHERE s.customer_id = e.customer_id AND s.subscription_id = e.subscription_id;
    GET DIAGNOSTICS v_ended = ROW_COUNT;
    IF v_ended <> cardinality(p_endings) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB901',
            MESSAGE = format('%s of %s subscriptions were ended', v_ended, cardinality(p_endings));
    END IF;

    PERFORM billing.suspend_unpaid_resources(p_endings, p_as_of);
    PERFORM billing.record_endings(p_endings, v_moves, v_closed, p_as_of);
    RETURN v_ended;
END;
$function$;

COMMENT ON FUNCTION billing.end_subscriptions IS
'Ends subscriptions: closes their open invoices, cuts their timeline, sets the final status and tells the world. Returns how many.';
