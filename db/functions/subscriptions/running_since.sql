CREATE OR REPLACE FUNCTION billing.running_since(
    p_subscription billing.subscription,
    p_as_of timestamptz
)
RETURNS timestamptz
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Five minutes are the leeway of p_as_of: a call from just before a boundary that has been renewed acts at the boundary.
    SELECT coalesce(
        (SELECT max(p.period_start)
         FROM billing.subscription_period AS p
         WHERE p.customer_id = p_subscription.customer_id
           AND p.subscription_id = p_subscription.subscription_id
           AND p.period_start <= p_as_of + interval '5 minutes'),
        p_subscription.current_period_start
    );
$function$;

COMMENT ON FUNCTION billing.running_since IS
'Start of the period that runs at an instant, whatever was renewed early; of the current one before all of them, NULL without any.';
