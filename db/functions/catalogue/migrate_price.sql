CREATE OR REPLACE FUNCTION billing_api.migrate_price(
    p_plan_code text,
    p_effective_from timestamptz,
    p_notice_days integer,
    p_dry_run boolean DEFAULT true,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.price_migration
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      subscription, those that migrate, in key order
-- Writes:     subscription, subscription_event, outbox_event
-- Raises:     SB101 malformed, or less than the notice before p_effective_from, SB104 p_as_of, SB203 plan,
--             SB106 a period would cost more than any amount may be, SB313 the caller is bound to one customer
-- Idempotent: yes: who is on the price, or on the way to it, is not taken again
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_plan billing.plan := billing.require_plan(p_plan_code);
    v_migrants billing.price_migrant[];
BEGIN
    PERFORM billing.refuse_customer_scope();
    PERFORM billing.require_integer(p_notice_days, 'p_notice_days', 0, 365);
    PERFORM billing.require_flag(p_dry_run, 'p_dry_run');
    IF (p_effective_from >= v_as_of + make_interval(days => p_notice_days) AND isfinite(p_effective_from)) IS NOT TRUE THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('p_effective_from must be at least %s days ahead', p_notice_days);
    END IF;

    v_migrants := CASE
        WHEN p_dry_run THEN ARRAY(SELECT g FROM billing.price_migrants(v_plan, p_effective_from) AS g)
        ELSE billing.lock_price_migrants(v_plan, p_effective_from)
    END;
    PERFORM billing.require_payable_migration(v_migrants);
    IF NOT p_dry_run THEN
        PERFORM billing.schedule_price_migration(v_migrants, v_plan.code, p_effective_from, v_as_of);
    END IF;
    RETURN QUERY
    SELECT
        g.currency, count(*), sum(g.old_amount::numeric * g.quantity), sum(g.new_amount::numeric * g.quantity),
        sum((g.new_amount - g.old_amount)::numeric * g.quantity)
    FROM unnest(v_migrants) AS g
    GROUP BY g.currency
    ORDER BY g.currency;
END;
$function$;

COMMENT ON FUNCTION billing_api.migrate_price IS
'Moves the subscribers of a plan to the price in force at p_effective_from with their first renewal on or after it, and tells each of them now. Returns per currency how many, and the sums per period before and after in minor units. A dry run only counts. Call it again for those who signed up meanwhile.';
