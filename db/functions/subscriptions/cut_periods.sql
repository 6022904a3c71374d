CREATE OR REPLACE FUNCTION billing.cut_periods(
    p_customer_id bigint,
    p_subscription_id bigint,
    p_at timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; the caller holds the subscription
    -- Writes:     subscription_period
    -- Raises:     nothing
    -- Idempotent: yes
    SELECT billing.cut_ended_periods(
        ARRAY[ROW(p_customer_id, p_subscription_id, NULL, NULL, p_at)::billing.ending]
    );
$function$;

COMMENT ON FUNCTION billing.cut_periods IS
'Ends the timeline of a subscription at an instant: removes what begins then or later, shortens what runs on.';
