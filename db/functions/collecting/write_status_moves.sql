CREATE OR REPLACE FUNCTION billing.write_status_moves(
    p_moves billing.status_move[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; subscriptions are locked by the caller
    -- Writes:     subscription
    -- Raises:     SB303 transition not allowed
    -- Idempotent: no
    -- Under HOLD a past due subscription is not due, except to be ended at a flag that was set before.
    UPDATE billing.subscription AS s
    SET status = m.to_status,
        past_due_since = CASE WHEN m.to_status = 'PAST_DUE' THEN p_as_of END,
        access_until = CASE WHEN m.to_status = 'PAST_DUE' THEN billing.grace_end(s) END,
        next_renewal_at = CASE
            WHEN s.parked_at IS NOT NULL THEN NULL
            WHEN m.to_status = 'ACTIVE' OR s.cancel_at_period_end OR dp.past_due_renewal = 'CONTINUE'
            THEN s.current_period_end
        END,
        version = s.version + 1
    FROM unnest(p_moves) AS m, billing.dunning_policy AS dp
    WHERE m.from_status <> 'INCOMPLETE'
      AND s.customer_id = m.customer_id
      AND s.subscription_id = m.subscription_id
      AND dp.dunning_policy_id = s.dunning_policy_id;
$function$;

COMMENT ON FUNCTION billing.write_status_moves IS
'Writes ACTIVE or PAST_DUE with what goes with it: since when, access by grace, when it is due next.';
