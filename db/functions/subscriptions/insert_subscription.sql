CREATE OR REPLACE FUNCTION billing.insert_subscription(
    p_terms billing.sign_up
)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      waits for another sign-up on the same resource to commit or to roll back
-- Writes:     subscription
-- Raises:     nothing of its own
-- Idempotent: yes, by (customer_id, resource_id) among the live ones
-- A checkout has no period until its payment settles, and no anchor unless the calendar gives it. event_seq is that of
-- InvoiceOpened, or of SubscriptionCreated where a trial comes first.
DECLARE
    c_has_begun CONSTANT boolean := p_terms.status <> 'INCOMPLETE';
    c_start CONSTANT timestamptz := CASE WHEN c_has_begun THEN p_terms.as_of END;
    c_end CONSTANT timestamptz :=
        CASE WHEN c_has_begun THEN coalesce(p_terms.trial_end, (p_terms.first).period_end) END;
    v_subscription_id bigint;
BEGIN
    INSERT INTO billing.subscription (
        customer_id, resource_id, status, price_id, quantity, current_period_kind, current_period_start,
        current_period_end, next_renewal_at, auto_renew, term_periods, term_end_at, time_zone, anchor_at, anchor_day,
        period_no, payment_method_id, dunning_policy_id, created_at, event_seq
    )
    VALUES (
        p_terms.customer_id, p_terms.resource_id, p_terms.status, p_terms.price_id, p_terms.quantity,
        CASE p_terms.status WHEN 'TRIALING' THEN 'TRIAL' WHEN 'ACTIVE' THEN 'BILLED' END,
        c_start, c_end, c_end, p_terms.auto_renew, p_terms.term_periods,
        CASE WHEN c_has_begun THEN p_terms.term_end_at END, p_terms.time_zone,
        CASE WHEN c_has_begun OR p_terms.anchor_day IS NOT NULL THEN (p_terms.first).anchor_at END,
        p_terms.anchor_day,
        CASE
            WHEN p_terms.status = 'TRIALING' THEN (p_terms.first).period_no - 1
            WHEN c_has_begun OR p_terms.anchor_day IS NOT NULL THEN (p_terms.first).period_no
            ELSE 0
        END,
        p_terms.payment_method_id, p_terms.dunning_policy_id, p_terms.as_of,
        CASE p_terms.status WHEN 'TRIALING' THEN 1 ELSE 2 END
    )
    ON CONFLICT (customer_id, resource_id)
    WHERE status IN ('INCOMPLETE', 'TRIALING', 'ACTIVE', 'PAST_DUE', 'PAUSED')
    DO NOTHING
    RETURNING subscription_id INTO v_subscription_id;
    RETURN v_subscription_id;
END;
$function$;

COMMENT ON FUNCTION billing.insert_subscription IS
'Inserts a new subscription with its decided terms and returns its id; NULL where the resource has a live one.';
