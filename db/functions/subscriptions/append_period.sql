CREATE OR REPLACE FUNCTION billing.append_period(
    p_customer_id bigint,
    p_subscription_id bigint,
    p_start timestamptz,
    p_end timestamptz,
    p_kind text,
    p_invoice_id bigint,
    p_opened_seq bigint
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; the caller holds the subscription
    -- Writes:     subscription_period
    -- Raises:     23503, 23505 unless it starts where the timeline ends
    -- Idempotent: no
    INSERT INTO billing.subscription_period (
        customer_id, subscription_id, period_start, period_end, prev_end, kind, invoice_id, opened_seq
    )
    SELECT
        p_customer_id, p_subscription_id, p_start, p_end,
        CASE WHEN EXISTS (
            SELECT 1
            FROM billing.subscription_period AS p
            WHERE p.customer_id = p_customer_id AND p.subscription_id = p_subscription_id
        ) THEN p_start END,
        p_kind, p_invoice_id, p_opened_seq;
$function$;

COMMENT ON FUNCTION billing.append_period IS 'Appends a period to the timeline of a subscription, or begins it.';
