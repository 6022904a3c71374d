CREATE OR REPLACE FUNCTION billing_api.add_price(
    p_plan_code text,
    p_amount bigint,
    p_currency text,
    p_effective_from timestamptz,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.price
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key
-- Writes:     idempotency_key, price
-- Raises:     SB101, SB102 currency, SB104 p_as_of or p_effective_from, SB106 amount, SB203 plan,
--             SB305 key used with other arguments, SB309 a version from that instant exists,
--             SB313 the caller is bound to one customer
-- Idempotent: yes, by p_idempotency_key
DECLARE
    v_replay jsonb;
    v_as_of timestamptz;
    v_plan billing.plan;
    v_effective_from timestamptz;
    v_price_id bigint;
    v_price billing_api.price;
BEGIN
    PERFORM billing.refuse_customer_scope();
    v_plan := billing.require_plan(p_plan_code);
    PERFORM billing.require_amount(p_amount, 'p_amount', 0);
    PERFORM billing.require_currency(p_currency);
    v_replay := billing.claim_idempotency_key(
        0, 'add_price', p_idempotency_key,
        jsonb_build_object(
            'planCode', p_plan_code, 'amount', p_amount, 'currency', p_currency,
            'effectiveFrom', extract(epoch FROM p_effective_from)
        ),
        false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.price, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    v_effective_from := billing.require_effective_from(p_effective_from, v_as_of);
    -- Interval and trial of the plan stay as they are: another interval is another plan.
    INSERT INTO billing.price (
        plan_id, amount, currency, interval_unit, interval_count, trial_days, effective_from, created_at
    )
    SELECT
        pr.plan_id, p_amount, p_currency, pr.interval_unit, pr.interval_count, pr.trial_days, v_effective_from, v_as_of
    FROM billing.price AS pr
    WHERE pr.plan_id = v_plan.plan_id
    ORDER BY pr.price_id
    LIMIT 1
    ON CONFLICT ON CONSTRAINT price_version_is_unique DO NOTHING
    RETURNING price_id INTO v_price_id;
    IF v_price_id IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB309',
            MESSAGE = format(
                'plan %s has a price in %s from %s', p_plan_code, p_currency, billing.to_rfc3339(v_effective_from)
            ),
            HINT = 'Prices are never changed. Choose another instant.';
    END IF;

    SELECT pr.* INTO STRICT v_price FROM billing_api.price AS pr WHERE pr.price_id = v_price_id;
    PERFORM billing.store_response(0, 'add_price', p_idempotency_key, to_jsonb(v_price));
    RETURN NEXT v_price;
END;
$function$;

COMMENT ON FUNCTION billing_api.add_price IS
'Adds a price version to a plan, in minor units, for subscriptions that begin from p_effective_from on. Those that run keep their price.';
