CREATE TABLE billing_test.race (
    customer_id bigint NOT NULL,
    subscription_id bigint NOT NULL
);

COMMENT ON TABLE billing_test.race IS 'The subscriptions that the sessions of a spec compete for.';

CREATE FUNCTION billing_test.begin_race(
    p_subscriptions integer DEFAULT 1,
    p_credit bigint DEFAULT 0
)
RETURNS void
LANGUAGE plpgsql
AS $function$
-- Each permutation of a spec has a customer of its own: what the engine has written cannot be taken away. What is left
-- of the permutation before is cancelled, so that it competes no more.
DECLARE
    v_customer_id bigint;
BEGIN
    PERFORM billing_test.clock('2027-05-01T00:00:00Z');
    IF NOT EXISTS (SELECT FROM billing.plan AS p WHERE p.code = 'BASIC') THEN
        PERFORM billing_api.create_plan('BASIC', 'Basic', 3000, 'USD', 'MONTH', p_as_of => '2027-01-01T00:00:00Z');
    END IF;
    PERFORM billing_api.cancel_subscription(s.subscription_id)
    FROM billing.subscription AS s
    WHERE s.status NOT IN ('CANCELED', 'EXPIRED');
    DELETE FROM billing_test.race;

    v_customer_id := billing_test.customer(format('customer %s', (SELECT count(*) FROM billing.customer)));
    FOR v_no IN 1 .. p_subscriptions LOOP
        INSERT INTO billing_test.race
        SELECT v_customer_id, billing_test.subscription(
            v_customer_id, p_resource_ref => 'resource ' || v_no, p_as_of => '2027-04-01T00:00:00Z'
        );
    END LOOP;
    PERFORM billing_test.collect(p_as_of => '2027-04-01T00:00:00Z');
    IF p_credit > 0 THEN
        PERFORM billing_api.grant_credit(v_customer_id, p_credit, 'USD', 'race', 'race');
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing_test.begin_race IS
'A new customer with BASIC subscriptions, paid since 1 April 2027 and due on 1 May, which is now; and nobody else who is live.';

CREATE FUNCTION billing_test.outcome()
RETURNS TABLE (no bigint, status text, ends date, invoices text, credit bigint, attempts text)
LANGUAGE sql
AS $function$
    -- Numbers instead of ids, which differ from run to run.
    SELECT
        row_number() OVER (ORDER BY s.subscription_id),
        s.status || CASE WHEN s.cancel_at_period_end THEN ' until' ELSE '' END,
        s.current_period_end::date,
        (SELECT string_agg(to_char(i.period_start, 'MM-DD ') || i.status, ', ' ORDER BY i.period_start, i.invoice_id)
         FROM billing.invoice AS i WHERE i.customer_id = s.customer_id AND i.subscription_id = s.subscription_id),
        (SELECT b.balance FROM billing.credit_balance AS b WHERE b.customer_id = s.customer_id),
        (SELECT string_agg(a.status, ', ' ORDER BY a.started_at, a.attempt_no)
         FROM billing.payment_attempt AS a INNER JOIN billing.invoice AS i USING (customer_id, invoice_id)
         WHERE i.subscription_id = s.subscription_id AND i.period_start >= '2027-05-01Z')
    FROM billing.subscription AS s
    INNER JOIN billing_test.race AS r ON r.subscription_id = s.subscription_id
    ORDER BY s.subscription_id;
$function$;

COMMENT ON FUNCTION billing_test.outcome IS 'How a race ended: subscriptions, invoices, credit and attempts since May.';
