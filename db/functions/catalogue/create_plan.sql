CREATE OR REPLACE FUNCTION billing_api.create_plan(
    p_code text,
    p_name text,
    p_amount bigint,
    p_currency text,
    p_interval_unit text,
    p_interval_count integer DEFAULT 1,
    p_trial_days integer DEFAULT 0,
    p_grant_first_allowed boolean DEFAULT false,
    p_trial_once_per text DEFAULT 'CUSTOMER',
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.plan
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key
-- Writes:     idempotency_key, plan, price
-- Raises:     SB101, SB102 currency, SB104 p_as_of, SB105, SB106 amount, SB305 key used with other arguments,
--             SB309 the code exists, SB313 the caller is bound to one customer
-- Idempotent: yes, by p_idempotency_key
DECLARE
    v_replay jsonb;
    v_as_of timestamptz;
    v_plan_id bigint;
    v_plan billing_api.plan;
BEGIN
    PERFORM billing.refuse_customer_scope();
    PERFORM billing.require_code(p_code, 'p_code', '^[A-Za-z0-9][A-Za-z0-9_.-]*$');
    PERFORM billing.require_text(p_name, 'p_name', 200);
    PERFORM billing.require_amount(p_amount, 'p_amount', 0);
    PERFORM billing.require_currency(p_currency);
    PERFORM billing.require_interval_count(p_interval_unit, p_interval_count);
    PERFORM billing.require_integer(p_trial_days, 'p_trial_days', 0, 730);
    PERFORM billing.require_flag(p_grant_first_allowed, 'p_grant_first_allowed');
    PERFORM billing.require_choice(p_trial_once_per, 'p_trial_once_per', '{CUSTOMER,PLAN,RESOURCE}');
    v_replay := billing.claim_idempotency_key(
        0, 'create_plan', p_idempotency_key,
        jsonb_build_object(
            'code', p_code, 'name', p_name, 'amount', p_amount, 'currency', p_currency,
            'intervalUnit', p_interval_unit, 'intervalCount', p_interval_count, 'trialDays', p_trial_days,
            'grantFirstAllowed', p_grant_first_allowed, 'trialOncePer', p_trial_once_per
        ),
        false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.plan, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    INSERT INTO billing.plan (code, name, trial_once_per, grant_first_allowed, created_at)
    VALUES (p_code, p_name, p_trial_once_per, p_grant_first_allowed, v_as_of)
    ON CONFLICT ON CONSTRAINT plan_code_is_unique DO NOTHING
    RETURNING plan_id INTO v_plan_id;
    IF v_plan_id IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB309',
            MESSAGE = format('plan %s exists', p_code),
            DETAIL = (SELECT p.plan_id::text FROM billing.plan AS p WHERE p.code = p_code),
            HINT = 'Plans are never changed. Add a price with billing_api.add_price, or choose another code.';
    END IF;
    INSERT INTO billing.price (
        plan_id, amount, currency, interval_unit, interval_count, trial_days, effective_from, created_at
    )
    VALUES (v_plan_id, p_amount, p_currency, p_interval_unit, p_interval_count, p_trial_days, v_as_of, v_as_of);

    SELECT p.* INTO STRICT v_plan FROM billing_api.plan AS p WHERE p.plan_id = v_plan_id;
    PERFORM billing.store_response(0, 'create_plan', p_idempotency_key, to_jsonb(v_plan));
    RETURN NEXT v_plan;
END;
$function$;

COMMENT ON FUNCTION billing_api.create_plan IS
'Creates a plan with its first price, effective at once: p_amount minor units per unit and period.';
