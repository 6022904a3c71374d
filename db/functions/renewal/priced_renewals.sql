CREATE OR REPLACE FUNCTION billing.priced_renewals(
    p_subscriptions billing.subscription_key[]
)
RETURNS SETOF billing.priced_renewal
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     22003 for an amount beyond bigint
    -- Idempotent: yes
    -- A period that starts after the boundary before it (the stub of calendar billing) is prorated by seconds.
    SELECT
        s.customer_id, s.subscription_id, s.resource_id, s.status, s.version, s.event_seq, v.verdict, v.reason,
        s.price_id, pl.code, pl.name, s.quantity, pr.amount, pr.currency, t.period_no, t.period_start, t.period_end,
        CASE WHEN v.verdict <> 'RENEW' THEN 0
             WHEN t.period_start > t.full_start
             THEN billing.prorated_amount(
                 pr.amount, s.quantity, extract(epoch FROM t.period_end - t.period_start),
                 extract(epoch FROM t.period_end - t.full_start)
             )
             ELSE (pr.amount::numeric * s.quantity)::bigint
        END,
        m.payment_method_id, m.gateway_account_id, coalesce(b.balance, 0), coalesce(b.entry_seq, 0)
    FROM unnest(p_subscriptions) AS k
    INNER JOIN billing.subscription AS s
        ON s.customer_id = k.customer_id AND s.subscription_id = k.subscription_id
    INNER JOIN billing.price AS pr ON pr.price_id = s.price_id
    INNER JOIN billing.plan AS pl ON pl.plan_id = pr.plan_id
    INNER JOIN billing.dunning_policy AS dp ON dp.dunning_policy_id = s.dunning_policy_id
    LEFT JOIN billing.credit_balance AS b ON b.customer_id = s.customer_id AND b.currency = pr.currency
    LEFT JOIN LATERAL billing.usable_method(s.customer_id, s.payment_method_id) AS m ON true
    CROSS JOIN LATERAL (
        SELECT
            s.period_no + 1 AS period_no,
            s.current_period_end AS period_start,
            billing.period_boundary(s.anchor_at, s.time_zone, pr.period_length, s.period_no + 1) AS period_end,
            billing.period_boundary(s.anchor_at, s.time_zone, pr.period_length, s.period_no) AS full_start
    ) AS t
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN s.cancel_at_period_end THEN 'CANCEL'
            WHEN s.current_period_kind = 'TRIAL' AND m.payment_method_id IS NULL AND pr.amount > 0 THEN 'CANCEL'
            WHEN s.current_period_end >= s.term_end_at THEN CASE s.status WHEN 'PAST_DUE' THEN 'REST' ELSE 'EXPIRE' END
            WHEN s.status = 'PAST_DUE' AND dp.past_due_renewal = 'HOLD' THEN 'REST'
            ELSE 'RENEW'
        END AS verdict,
        CASE
            WHEN s.cancel_at_period_end THEN 'period_end'
            WHEN s.current_period_kind = 'TRIAL' AND m.payment_method_id IS NULL AND pr.amount > 0 THEN 'no_payment_method'
            WHEN s.current_period_end >= s.term_end_at THEN 'term_end'
        END AS reason
    ) AS v;
$function$;

COMMENT ON FUNCTION billing.priced_renewals IS
'Claimed subscriptions with the verdict, the next period, its full price in minor units, the method and the credit at hand.';
