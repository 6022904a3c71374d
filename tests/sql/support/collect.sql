CREATE FUNCTION billing_test.collect(
    p_outcome text DEFAULT 'SUCCEEDED',
    p_code text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now(),
    p_gateway_account text DEFAULT 'sim'
)
RETURNS integer
LANGUAGE plpgsql
AS $function$
DECLARE
    v_results billing.charge_result[];
BEGIN
    SELECT array_agg(
        ROW(
            q.customer_id, q.attempt_id, q.claim_epoch, p_outcome,
            CASE p_outcome WHEN 'SUCCEEDED' THEN 'pay_' || q.attempt_id END, q.amount, q.currency, p_code, NULL, NULL,
            'SEND'
        )::billing.charge_result
    )
    INTO v_results
    FROM billing_worker.start_attempts(p_gateway_account, 1000, 'test', p_as_of) AS q;
    IF v_results IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM billing_worker.settle_attempts(v_results, p_as_of);
    RETURN cardinality(v_results);
END;
$function$;

COMMENT ON FUNCTION billing_test.collect IS
'Starts an attempt for every due invoice of a gateway account and settles all of them with one outcome. Returns how many.';
