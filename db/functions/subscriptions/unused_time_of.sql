CREATE OR REPLACE FUNCTION billing.unused_time_of(
    p_subscription billing.subscription,
    p_from timestamptz
)
RETURNS billing.unused_time[]
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing; whoever settles one of these invoices needs the subscription, which the caller holds
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- Per line: price x quantity x seconds left / seconds of the full period as it was priced, floored. Never more
    -- than was paid for the invoice and not yet given back. What an open invoice drew from credit goes back with it.
    SELECT coalesce(array_agg(ROW(u.invoice_id, u.currency, u.amount)::billing.unused_time ORDER BY u.invoice_id), '{}')
    FROM (
        SELECT
            i.invoice_id,
            i.currency,
            least(
                sum(billing.prorated_amount(
                    l.unit_amount, l.quantity, c.seconds,
                    coalesce(l.seconds_total, extract(epoch FROM l.period_end - l.period_start))
                )),
                i.amount_paid + CASE WHEN i.status = 'OPEN' THEN 0 ELSE i.credit_applied END - g.amount
            )::bigint AS amount
        FROM (
            SELECT
                p.customer_id,
                p.invoice_id,
                sum(extract(epoch FROM p.period_end - greatest(p.period_start, p_from))) AS seconds
            FROM billing.subscription_period AS p
            WHERE p.customer_id = p_subscription.customer_id
              AND p.subscription_id = p_subscription.subscription_id
              AND p.kind = 'BILLED'
              AND p.period_end > p_from
            GROUP BY p.customer_id, p.invoice_id
        ) AS c
        INNER JOIN billing.invoice AS i ON i.customer_id = c.customer_id AND i.invoice_id = c.invoice_id
        INNER JOIN billing.invoice_line AS l
            ON l.customer_id = i.customer_id AND l.invoice_id = i.invoice_id AND l.kind IN ('PERIOD', 'PRORATION')
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(e.amount), 0) AS amount
            FROM billing.credit_entry AS e
            WHERE e.customer_id = i.customer_id AND e.invoice_id = i.invoice_id AND e.kind = 'UNUSED_TIME'
        ) AS g
        GROUP BY i.invoice_id, i.currency, i.amount_paid, i.status, i.credit_applied, g.amount
    ) AS u
    WHERE u.amount > 0;
$function$;

COMMENT ON FUNCTION billing.unused_time_of IS
'What was paid, in minor units per invoice, for time of a subscription from an instant on.';
