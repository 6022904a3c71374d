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
    SELECT coalesce(array_agg(ROW(u.invoice_id, u.currency, u.amount)::billing.unused_time ORDER BY u.invoice_id), '{}')
    FROM (
        SELECT
            v.base_invoice_id AS invoice_id,
            v.currency,
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
    WHERE u.amount > 0;
$function$;

COMMENT ON FUNCTION billing.unused_time_of IS
'What was paid, in minor units per invoice, for time of a subscription from an instant on.';
