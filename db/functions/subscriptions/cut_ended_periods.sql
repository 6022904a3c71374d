CREATE OR REPLACE FUNCTION billing.cut_ended_periods(
    p_endings billing.ending[]
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; subscriptions are locked by the caller
-- Writes:     subscription_period
-- Raises:     nothing
-- Idempotent: yes
-- Two statements, in this order: the chain refuses to shorten a row that still has a successor.
BEGIN
    DELETE FROM billing.subscription_period AS p
    USING unnest(p_endings) AS e
    WHERE p.customer_id = e.customer_id
      AND p.subscription_id = e.subscription_id
      AND p.period_start >= e.ended_at;

    UPDATE billing.subscription_period AS p
    SET period_end = e.ended_at
    FROM unnest(p_endings) AS e
    WHERE p.customer_id = e.customer_id
      AND p.subscription_id = e.subscription_id
      AND p.period_end > e.ended_at;
END;
$function$;

COMMENT ON FUNCTION billing.cut_ended_periods IS
'Ends the timeline of each subscription at its end: removes what begins later, shortens what runs on.';
