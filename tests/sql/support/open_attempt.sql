CREATE TABLE billing_test.open_request (
    request billing.charge_request NOT NULL
);

COMMENT ON TABLE billing_test.open_request IS 'The charge request that several sessions of a spec speak about.';

CREATE FUNCTION billing_test.open_attempt()
RETURNS void
LANGUAGE plpgsql
AS $function$
-- Each permutation of a spec has a customer of its own: what the engine has written cannot be taken away.
BEGIN
    PERFORM billing_test.clock('2027-01-31T10:30:00Z');
    IF NOT EXISTS (SELECT FROM billing.plan AS p WHERE p.code = 'BASIC') THEN
        PERFORM billing_test.plan();
    END IF;
    PERFORM billing_test.subscription(
        billing_test.customer(format('customer %s', (SELECT count(*) FROM billing.customer)))
    );
    DELETE FROM billing_test.open_request;
    INSERT INTO billing_test.open_request
    SELECT q FROM billing_worker.start_attempts('sim', 1, 'test') AS q;
END;
$function$;

COMMENT ON FUNCTION billing_test.open_attempt IS
'A new customer with a first invoice and a started attempt, which settle_open() answers from any session.';

CREATE FUNCTION billing_test.settle_open(
    p_outcome text,
    p_code text DEFAULT NULL
)
RETURNS SETOF billing.settlement
LANGUAGE plpgsql
AS $function$
DECLARE
    v_request billing.charge_request;
BEGIN
    SELECT (o.request).* INTO STRICT v_request FROM billing_test.open_request AS o;
    RETURN QUERY
    SELECT s.*
    FROM billing_worker.settle_attempts(ARRAY[
        jsonb_populate_record(
            NULL::billing.charge_result,
            to_jsonb(v_request) || jsonb_build_object(
                'outcome', p_outcome,
                'gateway_payment_id', CASE p_outcome WHEN 'SUCCEEDED' THEN 'pay_' || v_request.attempt_id END,
                'code', p_code,
                'source', 'SEND'
            )
        )
    ]) AS s;
END;
$function$;

COMMENT ON FUNCTION billing_test.settle_open IS 'Settles what open_attempt() has started, with what the gateway said.';
