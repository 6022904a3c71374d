CREATE OR REPLACE FUNCTION billing.check_overdue_renewals(
    p_customers bigint[] DEFAULT NULL
)
RETURNS SETOF billing.violation
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
SET plan_cache_mode = force_custom_plan
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
BEGIN
    RETURN QUERY
    SELECT
        'overdue_renewals', 'STUCK', s.customer_id, format('subscription %s', s.subscription_id),
        format('due since %s', s.next_renewal_at)
    FROM billing.subscription AS s
    WHERE s.next_renewal_at < (SELECT billing.now()) - interval '1 day'
      AND (p_customers IS NULL OR s.customer_id = ANY (p_customers));
END;
$function$;

COMMENT ON FUNCTION billing.check_overdue_renewals IS
'A renewal is more than a day late and not parked: a period is about to be skipped because no worker renews.';
