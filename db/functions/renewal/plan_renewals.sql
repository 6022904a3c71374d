CREATE OR REPLACE FUNCTION billing.plan_renewals(
    p_subscriptions billing.subscription_key[]
)
RETURNS billing.renewal[]
LANGUAGE sql
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing; subscriptions and credit balances are locked by the steps before
    -- Writes:     nothing (takes invoice ids from their sequence)
    -- Raises:     22003 for an amount beyond bigint
    -- Idempotent: yes
    -- The only step that decides. Called alone it is a dry run.
    SELECT coalesce(
        array_agg(
            ROW(
                d.customer_id, d.subscription_id, d.resource_id, d.verdict, d.status,
                CASE d.verdict
                    WHEN 'CANCEL' THEN 'CANCELED'
                    WHEN 'EXPIRE' THEN 'EXPIRED'
                    WHEN 'PAUSE' THEN 'PAUSED'
                    WHEN 'RENEW' THEN CASE WHEN d.status = 'TRIALING' AND d.credit = d.total THEN 'ACTIVE' ELSE d.status END
                    ELSE d.status
                END,
                d.reason, d.version, d.event_seq,
                CASE d.verdict
                    WHEN 'RENEW'
                    THEN CASE WHEN d.credit = d.total THEN 3 ELSE 1 END + (d.from_plan_code IS NOT NULL)::integer
                    WHEN 'PAUSE' THEN 1
                    ELSE 0
                END,
                CASE WHEN d.verdict = 'RENEW' THEN nextval('billing.invoice_id_seq') END,
                d.price_id, d.plan_code, d.plan_name, d.quantity, d.unit_amount, d.currency, d.period_amount, d.total,
                d.overflow, d.credit,
                CASE WHEN d.credit > 0 THEN d.entry_seq + d.draw_no END,
                CASE WHEN d.credit > 0 THEN d.balance - d.drawn_before - d.credit END,
                d.payment_method_id, d.gateway_account_id, d.anchor_at, d.period_no, d.full_start, d.period_start,
                d.period_end, CASE WHEN d.verdict = 'RENEW' THEN d.period_end END,
                d.from_plan_code, d.from_quantity
            )::billing.renewal
            ORDER BY d.customer_id, d.subscription_id
        ),
        '{}'
    )
    FROM (
        -- How much of the credit each may draw: in order of due date and id, by running sum.
        SELECT
            c.*,
            count(*) FILTER (WHERE c.credit > 0) OVER draws AS draw_no
        FROM (
            SELECT
                p.*,
                least(p.balance, coalesce(sum(p.total) OVER earlier, 0))::bigint AS drawn_before,
                least(p.total, p.balance - least(p.balance, coalesce(sum(p.total) OVER earlier, 0)))::bigint AS credit
            FROM billing.priced_renewals(p_subscriptions) AS p
            WINDOW earlier AS (
                PARTITION BY p.customer_id, p.currency ORDER BY p.period_start, p.subscription_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
        ) AS c
        WINDOW draws AS (PARTITION BY c.customer_id, c.currency ORDER BY c.period_start, c.subscription_id)
    ) AS d;
$function$;

COMMENT ON FUNCTION billing.plan_renewals IS
'Decides what becomes of each claimed subscription: renew, cancel, expire or rest; with price, period and credit.';
