CREATE FUNCTION billing_test.sign_up_scene(
    p_credit bigint DEFAULT 0,
    p_trial_days integer DEFAULT 0
)
RETURNS void
LANGUAGE plpgsql
AS $function$
-- Committed and never undone, since the engine deletes nothing: each permutation has a plan and a customer of its own.
DECLARE
    c_no CONSTANT bigint := (SELECT count(*) + 1 FROM billing.customer);
BEGIN
    IF NOT billing.is_test_database() THEN
        PERFORM billing_ops.mark_test_database();
    END IF;
    PERFORM billing_ops.set_clock('2027-01-31 10:30Z');
    PERFORM billing_test.plan('PLAN_' || c_no, p_trial_days => p_trial_days);
    PERFORM billing_test.customer('customer-' || c_no);
    IF p_credit > 0 THEN
        PERFORM billing_api.grant_credit(c.customer_id, p_credit, 'USD', 'gift', 'g-' || c_no)
        FROM billing.customer AS c
        WHERE c.external_ref = 'customer-' || c_no;
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing_test.sign_up_scene IS
'A plan and a customer of their own for one permutation of an isolation spec, which finds them as the newest.';
