CREATE OR REPLACE FUNCTION billing_ops.subscription_timeline(
    p_subscription_id bigint
)
RETURNS SETOF billing.timeline_entry
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     SB201 unknown subscription
-- Idempotent: yes
-- In the order in which things happened: by event number, never by business time, which may stand still or be set back.
-- What has no number comes after the last number that was written before it, and never before its invoice.
DECLARE
    v_customer_id bigint := billing.customer_of_subscription(p_subscription_id);
BEGIN
    RETURN QUERY
    WITH numbered AS MATERIALIZED (
        SELECT n.* FROM billing.numbered_history(v_customer_id, p_subscription_id) AS n
    ),
    placed AS (
        SELECT n.*, n.event_seq AS place, 0 AS part FROM numbered AS n
        UNION ALL
        SELECT
            u.*,
            greatest(
                (SELECT max(n.event_seq) FROM numbered AS n WHERE n.recorded_at <= u.recorded_at),
                (SELECT min(n.event_seq) FROM numbered AS n WHERE n.invoice_id = u.invoice_id)
            ),
            1
        FROM billing.unnumbered_history(v_customer_id, p_subscription_id) AS u
    )
    SELECT p.at, p.event_seq, p.what, p.actor, p.invoice_id, p.attempt_id, p.amount, p.currency, p.detail
    FROM placed AS p
    ORDER BY p.place, p.part, p.what LIKE 'Period %', p.recorded_at, p.what;
END;
$function$;

COMMENT ON FUNCTION billing_ops.subscription_timeline IS
'The whole history of a subscription in order: changes with actor, periods, invoices with amounts, attempts, what gateways said with codes, webhooks, credit.';
