CREATE OR REPLACE FUNCTION billing.value_of_period(
    p_subscription billing.subscription,
    p_from timestamptz
)
RETURNS SETOF billing.period_value
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing; whoever settles one of these invoices needs the subscription, which the caller holds
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- One row per covering invoice, oldest first.
    SELECT
        v.base_invoice_id, v.currency, c.seconds_left::bigint, v.seconds_total, v.unit_amount, v.quantity, v.creditable,
        v.waiting, v.owed
    FROM (
        SELECT
            p.customer_id,
            p.invoice_id,
            sum(extract(epoch FROM p.period_end - greatest(p.period_start, p_from))) AS seconds_left
        FROM billing.subscription_period AS p
        WHERE p.customer_id = p_subscription.customer_id
          AND p.subscription_id = p_subscription.subscription_id
          AND p.kind = 'BILLED'
          AND p.period_end > p_from
        GROUP BY p.customer_id, p.invoice_id
        UNION ALL
        -- At the very end of the current period nothing is left of it.
        SELECT p.customer_id, p.invoice_id, 0
        FROM billing.subscription_period AS p
        WHERE p.customer_id = p_subscription.customer_id
          AND p.subscription_id = p_subscription.subscription_id
          AND p.kind = 'BILLED'
          AND p.period_start = p_subscription.current_period_start
          AND p.period_end <= p_from
    ) AS c
    CROSS JOIN LATERAL billing.value_of_invoice(c.customer_id, c.invoice_id) AS v
    ORDER BY v.base_invoice_id;
$function$;

COMMENT ON FUNCTION billing.value_of_period IS
'What is left from an instant on of each billed period of a subscription, at which price and out of how long a period, how much of what was paid for it may still be credited, what waits for an invoice and what is still owed for it.';
