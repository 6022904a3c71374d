CREATE FUNCTION billing_test.plan(
    p_code text DEFAULT 'BASIC',
    p_amount bigint DEFAULT 3000,
    p_currency text DEFAULT 'USD',
    p_interval_unit text DEFAULT 'MONTH',
    p_interval_count integer DEFAULT 1,
    p_trial_days integer DEFAULT 0,
    p_trial_once_per text DEFAULT 'CUSTOMER'
)
RETURNS bigint
LANGUAGE plpgsql
AS $function$
DECLARE
    v_plan_id bigint;
BEGIN
    SELECT p.plan_id
    INTO STRICT v_plan_id
    FROM billing_api.create_plan(
        p_code, initcap(p_code), p_amount, p_currency, p_interval_unit, p_interval_count, p_trial_days,
        p_trial_once_per => p_trial_once_per
    ) AS p;
    RETURN v_plan_id;
END;
$function$;

COMMENT ON FUNCTION billing_test.plan IS 'A new plan; by default BASIC, 30.00 USD a month, without a trial.';
