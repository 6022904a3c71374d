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
    -- A period that starts after the boundary before it (the stub of calendar billing) is prorated by seconds. Lines that
    -- wait for this invoice are part of its total; where they outweigh the period, the rest overflows into credit.
    SELECT
        n.customer_id, n.subscription_id, n.resource_id, n.status, n.version, n.event_seq, n.verdict, n.reason,
        n.price_id, pl.code, pl.name, n.quantity, n.amount, n.currency,
        n.anchor_at, n.period_no, n.full_start, n.period_start, n.period_end,
        m.period_amount,
        greatest(0, m.period_amount + w.amount),
        greatest(0, -m.period_amount - w.amount),
        n.payment_method_id, n.gateway_account_id, coalesce(b.balance, 0), coalesce(b.entry_seq, 0),
        CASE WHEN n.changes THEN o.code END,
        CASE WHEN n.changes THEN n.old_quantity END
    FROM billing.next_periods(p_subscriptions) AS n
    INNER JOIN billing.price AS pr ON pr.price_id = n.price_id
    INNER JOIN billing.plan AS pl ON pl.plan_id = pr.plan_id
    INNER JOIN billing.price AS opr ON opr.price_id = n.old_price_id
    INNER JOIN billing.plan AS o ON o.plan_id = opr.plan_id
    LEFT JOIN billing.credit_balance AS b ON b.customer_id = n.customer_id AND b.currency = n.currency
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN n.verdict <> 'RENEW' THEN 0
            WHEN n.period_start > n.full_start
            THEN billing.prorated_amount(
                n.amount, n.quantity, extract(epoch FROM n.period_end - n.period_start),
                extract(epoch FROM n.period_end - n.full_start)
            )
            ELSE (n.amount::numeric * n.quantity)::bigint
        END AS period_amount
    ) AS m
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(l.amount) FILTER (WHERE n.verdict = 'RENEW'), 0)::bigint AS amount
        FROM billing.pending_line AS l
        WHERE l.customer_id = n.customer_id AND l.subscription_id = n.subscription_id
          AND l.billed_on_invoice_id IS NULL AND l.dropped_at IS NULL
    ) AS w;
$function$;

COMMENT ON FUNCTION billing.priced_renewals IS
'Claimed subscriptions with the verdict, the next period, what it costs in minor units, the method and the credit at hand.';
