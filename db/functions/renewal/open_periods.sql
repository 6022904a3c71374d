CREATE OR REPLACE FUNCTION billing.open_periods(
    p_renewals billing.renewal[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing
-- Writes:     subscription_period
-- Raises:     23505, 23503 where the timeline is not what the subscription says
-- Idempotent: no, but a period that exists is refused by its key
BEGIN
    INSERT INTO billing.subscription_period (
        customer_id, subscription_id, period_start, period_end, prev_end, kind, invoice_id, opened_seq
    )
    SELECT
        r.customer_id, r.subscription_id, r.period_start,
        CASE r.verdict WHEN 'PAUSE' THEN 'infinity' ELSE r.period_end END, r.period_start,
        CASE r.verdict WHEN 'PAUSE' THEN 'PAUSED' ELSE 'BILLED' END, r.invoice_id, r.event_seq + 1
    FROM unnest(p_renewals) AS r
    WHERE r.verdict IN ('RENEW', 'PAUSE')
    ORDER BY r.customer_id, r.subscription_id;
END;
$function$;

COMMENT ON FUNCTION billing.open_periods IS 'Appends the next period to the timeline of each subscription: billed where it renews, paused without end where it pauses.';
