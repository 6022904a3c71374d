CREATE FUNCTION billing_test.renewal_invoice(
    p_external_ref text DEFAULT 'customer',
    p_dunning_policy text DEFAULT 'standard',
    p_token text DEFAULT 'tok_ok'
)
RETURNS bigint
LANGUAGE plpgsql
AS $function$
-- BASIC from 1 April 2027, paid; renewed on 1 May 2027, and that invoice of 3000 is open and due.
DECLARE
    v_customer_id bigint;
    v_subscription_id bigint;
BEGIN
    PERFORM billing_test.clock('2027-12-31T00:00:00Z');
    IF NOT EXISTS (SELECT FROM billing.plan AS p WHERE p.code = 'BASIC') THEN
        PERFORM billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
    END IF;
    v_customer_id := billing_test.customer(p_external_ref, p_token => p_token);
    v_subscription_id := billing_test.subscription(
        v_customer_id, p_dunning_policy => p_dunning_policy, p_as_of => '2027-04-01T00:00:00Z'
    );
    PERFORM billing_test.collect(p_as_of => '2027-04-01T00:00:00Z');
    PERFORM billing_worker.renew_due(1, '2027-05-01T00:00:00Z');
    RETURN (
        SELECT i.invoice_id
        FROM billing.invoice AS i
        WHERE i.customer_id = v_customer_id AND i.subscription_id = v_subscription_id AND i.kind = 'RENEWAL'
    );
END;
$function$;

COMMENT ON FUNCTION billing_test.renewal_invoice IS
'A new customer with BASIC since 1 April 2027, renewed on 1 May: returns the open invoice of 3000.';
