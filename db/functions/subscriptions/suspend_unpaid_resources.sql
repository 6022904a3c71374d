CREATE OR REPLACE FUNCTION billing.suspend_unpaid_resources(
    p_endings billing.ending[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      resource, in key order by the update
    -- Writes:     resource
    -- Raises:     nothing
    -- Idempotent: yes
    UPDATE billing.resource AS r
    SET suspended_by_billing_at = p_as_of
    FROM unnest(p_endings) AS e
    INNER JOIN billing.subscription AS s
        ON s.customer_id = e.customer_id AND s.subscription_id = e.subscription_id
    INNER JOIN billing.dunning_policy AS dp ON dp.dunning_policy_id = s.dunning_policy_id
    WHERE e.reason = 'payment_failed'
      AND dp.suspend_resource
      AND r.customer_id = s.customer_id
      AND r.resource_id = s.resource_id
      AND r.suspended_by_billing_at IS NULL;
$function$;

COMMENT ON FUNCTION billing.suspend_unpaid_resources IS
'Suspends the resource of each subscription that ended unpaid under a policy that says so.';
