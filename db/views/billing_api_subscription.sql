CREATE OR REPLACE VIEW billing_api.subscription AS
SELECT
    s.subscription_id,
    s.customer_id,
    r.external_ref AS resource_ref,
    p.code AS plan_code,
    s.quantity,
    s.status,
    s.current_period_start,
    nullif(s.current_period_end, 'infinity') AS current_period_end,
    s.cancel_at_period_end,
    coalesce(
        (
            SELECT cp.code
            FROM billing.subscription_change AS c
            INNER JOIN billing.price AS cpr ON c.to_price_id = cpr.price_id
            INNER JOIN billing.plan AS cp ON cpr.plan_id = cp.plan_id
            WHERE c.customer_id = s.customer_id AND c.subscription_id = s.subscription_id AND c.status = 'PENDING'
        ),
        (
            SELECT np.code
            FROM billing.price AS npr
            INNER JOIN billing.plan AS np ON npr.plan_id = np.plan_id
            WHERE npr.price_id = s.pending_price_id
        )
    ) AS pending_plan_code,
    s.version,
    s.current_period_kind,
    s.next_renewal_at,
    s.price_id,
    pr.amount AS unit_amount,
    pr.currency,
    s.auto_renew,
    s.term_periods,
    s.term_end_at,
    s.time_zone,
    s.anchor_day,
    s.payment_method_id,
    d.code AS dunning_policy,
    s.past_due_since,
    s.access_until,
    s.ended_at,
    s.end_reason,
    s.created_at,
    s.pause_at_period_end
FROM billing.subscription AS s
INNER JOIN billing.resource AS r ON s.customer_id = r.customer_id AND s.resource_id = r.resource_id
INNER JOIN billing.price AS pr ON s.price_id = pr.price_id
INNER JOIN billing.plan AS p ON pr.plan_id = p.plan_id
INNER JOIN billing.dunning_policy AS d ON s.dunning_policy_id = d.dunning_policy_id
WHERE billing.in_customer_scope(s.customer_id);

COMMENT ON VIEW billing_api.subscription IS
'Subscriptions within the scope of the caller. Amounts in minor units, instants in UTC, periods half-open.';
COMMENT ON COLUMN billing_api.subscription.subscription_id IS 'Subscription.';
COMMENT ON COLUMN billing_api.subscription.customer_id IS 'Customer who pays.';
COMMENT ON COLUMN billing_api.subscription.resource_ref IS 'Name of the resource in the calling system.';
COMMENT ON COLUMN billing_api.subscription.plan_code IS 'Plan of the pinned price.';
COMMENT ON COLUMN billing_api.subscription.quantity IS 'Units, for example seats.';
COMMENT ON COLUMN billing_api.subscription.status IS
'INCOMPLETE, TRIALING, ACTIVE, PAST_DUE, PAUSED, CANCELED or EXPIRED. The last two are final.';
COMMENT ON COLUMN billing_api.subscription.current_period_start IS 'Start of the last opened period, inclusive.';
COMMENT ON COLUMN billing_api.subscription.current_period_end IS
'End of the last opened period, exclusive; NULL before the first and while paused.';
COMMENT ON COLUMN billing_api.subscription.cancel_at_period_end IS
'True: it ends at current_period_end instead of renewing.';
COMMENT ON COLUMN billing_api.subscription.pending_plan_code IS
'Plan of a change that waits for its payment or its date; NULL = none.';
COMMENT ON COLUMN billing_api.subscription.version IS 'Number of the row version, for p_expected_version.';
COMMENT ON COLUMN billing_api.subscription.current_period_kind IS
'TRIAL, BILLED or PAUSED; NULL before the first period.';
COMMENT ON COLUMN billing_api.subscription.next_renewal_at IS
'When the renewal run takes it up; NULL = not renewable now: incomplete, paused, held while past due, parked, ended.';
COMMENT ON COLUMN billing_api.subscription.price_id IS 'Pinned price version.';
COMMENT ON COLUMN billing_api.subscription.unit_amount IS 'Price per unit and period in minor units.';
COMMENT ON COLUMN billing_api.subscription.currency IS 'Currency, ISO 4217.';
COMMENT ON COLUMN billing_api.subscription.auto_renew IS 'False: it ends with its term.';
COMMENT ON COLUMN billing_api.subscription.term_periods IS
'Billed periods of a fixed term; NULL where it renews by itself.';
COMMENT ON COLUMN billing_api.subscription.term_end_at IS 'End of the fixed term, known once the first period is.';
COMMENT ON COLUMN billing_api.subscription.time_zone IS 'IANA zone, copied from the customer at sign-up.';
COMMENT ON COLUMN billing_api.subscription.anchor_day IS
'Calendar billing: day of the month on which periods start at local midnight. NULL = anniversary of sign-up.';
COMMENT ON COLUMN billing_api.subscription.payment_method_id IS
'Chosen payment method; NULL = the default of the customer.';
COMMENT ON COLUMN billing_api.subscription.dunning_policy IS
'Code of the policy that decides what follows a declined payment.';
COMMENT ON COLUMN billing_api.subscription.past_due_since IS
'Business time of the first decline that is not recovered.';
COMMENT ON COLUMN billing_api.subscription.access_until IS
'End of access while PAST_DUE; NULL = as long as it is PAST_DUE.';
COMMENT ON COLUMN billing_api.subscription.ended_at IS
'Effective end, for a cancellation at period end the boundary itself.';
COMMENT ON COLUMN billing_api.subscription.end_reason IS
'requested, period_end, term_end, payment_failed, no_payment_method, checkout_restarted, checkout_abandoned.';
COMMENT ON COLUMN billing_api.subscription.created_at IS 'Business time of sign-up.';
COMMENT ON COLUMN billing_api.subscription.pause_at_period_end IS 'True: it pauses at current_period_end instead of renewing.';
