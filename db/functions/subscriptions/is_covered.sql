CREATE OR REPLACE FUNCTION billing.is_covered(
    p_subscription billing.subscription,
    p_as_of timestamptz
)
RETURNS boolean
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- In a trial or billed period; or past the last one, which is renewed late, unless it is a trial that will end
    -- for want of a payment method.
    SELECT CASE
        WHEN p_as_of < p_subscription.current_period_end THEN EXISTS (
            SELECT 1
            FROM billing.subscription_period AS p
            WHERE p.customer_id = p_subscription.customer_id
              AND p.subscription_id = p_subscription.subscription_id
              AND p.kind IN ('TRIAL', 'BILLED')
              AND p.period_start <= p_as_of
              AND p.period_end > p_as_of
        )
        WHEN p_subscription.current_period_kind = 'TRIAL' THEN EXISTS (
            SELECT 1
            FROM billing.usable_method(p_subscription.customer_id, p_subscription.payment_method_id) AS m
        ) OR EXISTS (
            SELECT 1
            FROM billing.price AS pr
            WHERE pr.price_id = coalesce(p_subscription.pending_price_id, p_subscription.price_id) AND pr.amount = 0
        )
        ELSE p_subscription.current_period_kind = 'BILLED'
    END;
$function$;

COMMENT ON FUNCTION billing.is_covered IS
'True where a running subscription covers an instant: by a trial or billed period, or by one that is only renewed late.';
