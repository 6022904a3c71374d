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
    -- Price x quantity x seconds left / seconds of the full period as it was priced, floored; of a paused subscription
    -- what was left. Less what is still owed for the period, since an end waives it, and never more than was paid for it
    -- and not yet given back or promised.
    -- What an invoice carried on for the one before it counts as paid there and as missing here: together it was not paid.
    SELECT coalesce(array_agg(ROW(g.invoice_id, g.currency, g.amount)::billing.unused_time ORDER BY g.invoice_id), '{}')
    FROM (
        SELECT
            u.invoice_id,
            u.currency,
            least(
                u.amount,
                (sum(greatest(u.amount, 0)) OVER (ORDER BY u.invoice_id) + sum(least(u.at_most, 0)) OVER ())::bigint
            ) AS amount
        FROM (
            SELECT
                v.base_invoice_id AS invoice_id,
                v.currency,
                v.creditable + least(v.waiting, 0) AS at_most,
                least(
                    billing.prorated_amount(v.unit_amount, v.quantity, v.seconds_left, v.seconds_total)
                    - v.owed - greatest(v.waiting, 0),
                    v.creditable + least(v.waiting, 0)
                ) AS amount
            FROM (
                SELECT p.* FROM billing.value_of_period(p_subscription, p_from) AS p
                UNION ALL
                SELECT
                    i.base_invoice_id, i.currency, p_subscription.paused_seconds_left, i.seconds_total, i.unit_amount,
                    i.quantity, i.creditable, i.waiting, i.owed
                FROM billing.value_of_invoice(p_subscription.customer_id, p_subscription.paused_invoice_id) AS i
                WHERE p_subscription.paused_seconds_left > 0
            ) AS v
        ) AS u
    ) AS g
    WHERE g.amount > 0;
$function$;

COMMENT ON FUNCTION billing.unused_time_of IS
'What was paid, in minor units per invoice, for time of a subscription from an instant on.';
