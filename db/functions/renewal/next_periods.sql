CREATE OR REPLACE FUNCTION billing.next_periods(
    p_subscriptions billing.subscription_key[]
)
RETURNS SETOF billing.next_period
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- What the customer has chosen and the seller's new price of the same plan take effect together. Another interval
    -- is counted from the boundary on.
    SELECT
        s.customer_id, s.subscription_id, s.resource_id, s.status, s.version, s.event_seq, v.verdict, v.reason,
        pr.price_id, pr.amount, pr.currency, CASE WHEN c.is_chosen THEN s.pending_quantity ELSE s.quantity END,
        c.is_chosen OR pr.price_id <> s.price_id, s.price_id, s.quantity, m.payment_method_id, m.gateway_account_id,
        t.anchor_at, t.period_no, t.full_start, s.current_period_end, t.period_end
    FROM unnest(p_subscriptions) AS k
    INNER JOIN billing.subscription AS s
        ON s.customer_id = k.customer_id AND s.subscription_id = k.subscription_id
    INNER JOIN billing.price AS opr ON opr.price_id = s.price_id
    INNER JOIN billing.dunning_policy AS dp ON dp.dunning_policy_id = s.dunning_policy_id
    CROSS JOIN LATERAL (SELECT coalesce(s.pending_from <= s.current_period_end, false) AS is_chosen) AS c
    INNER JOIN billing.price AS cpr
        ON cpr.price_id = CASE WHEN c.is_chosen THEN s.pending_price_id ELSE s.price_id END
    LEFT JOIN billing.price AS mpr
        ON mpr.price_id = s.migration_price_id AND s.migration_from <= s.current_period_end AND mpr.plan_id = cpr.plan_id
    INNER JOIN billing.price AS pr ON pr.price_id = coalesce(mpr.price_id, cpr.price_id)
    LEFT JOIN LATERAL billing.usable_method(s.customer_id, s.payment_method_id) AS m ON true
    CROSS JOIN LATERAL (
        SELECT
            s.anchor_at, s.period_no + 1 AS period_no,
            billing.period_boundary(s.anchor_at, s.time_zone, pr.period_length, s.period_no) AS full_start,
            billing.period_boundary(s.anchor_at, s.time_zone, pr.period_length, s.period_no + 1) AS period_end
        WHERE billing.is_same_length(pr.period_length, opr.period_length)
        UNION ALL
        SELECT
            a.anchor_at, a.period_no + 1,
            billing.period_boundary(a.anchor_at, s.time_zone, pr.period_length, a.period_no),
            billing.period_boundary(a.anchor_at, s.time_zone, pr.period_length, a.period_no + 1)
        FROM billing.anchoring_at_renewal(s, pr.price_id, s.current_period_end) AS a
        WHERE NOT billing.is_same_length(pr.period_length, opr.period_length)
    ) AS t
    CROSS JOIN LATERAL billing.renewal_verdict(s, dp, m.payment_method_id IS NOT NULL OR pr.amount = 0) AS v;
$function$;

COMMENT ON FUNCTION billing.next_periods IS
'What becomes of each claimed subscription at its boundary, on which terms, and the period that would follow.';
