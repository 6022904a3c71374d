CREATE OR REPLACE FUNCTION billing.price_migrants(
    p_plan billing.plan,
    p_effective_from timestamptz
)
RETURNS SETOF billing.price_migrant
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- Who is about to leave the plan is left alone, and checkouts keep what they were offered.
    SELECT s.customer_id, s.subscription_id, pr.currency, s.quantity, pr.amount, t.price_id, t.amount
    FROM billing.subscription AS s
    INNER JOIN billing.price AS pr ON pr.price_id = s.price_id
    CROSS JOIN LATERAL (
        SELECT n.price_id, n.amount
        FROM billing.price AS n
        WHERE n.plan_id = p_plan.plan_id AND n.currency = pr.currency AND n.effective_from <= p_effective_from
        ORDER BY n.effective_from DESC
        LIMIT 1
    ) AS t
    WHERE pr.plan_id = p_plan.plan_id
      AND t.price_id <> s.price_id
      AND s.status IN ('TRIALING', 'ACTIVE', 'PAST_DUE', 'PAUSED')
      AND s.migration_price_id IS DISTINCT FROM t.price_id
      AND NOT EXISTS (
          SELECT 1
          FROM billing.price AS c
          WHERE c.price_id = s.pending_price_id AND c.plan_id <> p_plan.plan_id
      );
$function$;

COMMENT ON FUNCTION billing.price_migrants IS 'Subscriptions of a plan that are neither on the price in force at an instant nor on the way to it, with both prices in minor units.';
