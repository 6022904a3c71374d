CREATE OR REPLACE FUNCTION billing.decide_attempt(
    p_case billing.reconciliation_case,
    p_outcome text,
    p_gateway_payment_id text,
    p_amount bigint,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      payment_attempt; with CHARGED as settle_attempts; the caller holds subscription and invoice
-- Writes:     payment_attempt; with CHARGED as settle_attempts
-- Raises:     SB335 no attempt whose outcome is open
-- Idempotent: no
DECLARE
    v_attempt billing.payment_attempt;
    v_results billing.charge_result[];
    v_settlement billing.settlement;
BEGIN
    SELECT a.*
    INTO v_attempt
    FROM billing.payment_attempt AS a
    WHERE a.customer_id = p_case.customer_id AND a.attempt_id = p_case.attempt_id
    FOR NO KEY UPDATE;
    IF p_outcome IS NULL THEN
        UPDATE billing.payment_attempt AS a
        SET next_lookup_at = p_as_of
        WHERE a.customer_id = v_attempt.customer_id AND a.attempt_id = v_attempt.attempt_id AND a.ended_at IS NULL;
        RETURN;
    END IF;
    IF v_attempt.attempt_id IS NULL OR v_attempt.status = 'SUCCEEDED'
        OR (p_outcome = 'NOT_CHARGED' AND v_attempt.ended_at IS NOT NULL)
        OR v_attempt.lease_until > clock_timestamp()
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB335',
            MESSAGE = format('case %s is about no attempt whose outcome is open', p_case.case_id),
            DETAIL = v_attempt.status,
            HINT = 'Leave p_outcome out; where it is being asked about at this moment, try again in two minutes.';
    END IF;

    IF p_outcome = 'NOT_CHARGED' THEN
        UPDATE billing.payment_attempt AS a
        SET status = 'ABANDONED', ended_at = p_as_of, next_lookup_at = NULL, lease_until = NULL,
            claim_epoch = a.claim_epoch + 1
        WHERE a.customer_id = v_attempt.customer_id AND a.attempt_id = v_attempt.attempt_id;
        RETURN;
    END IF;
    v_results := ARRAY[
        ROW(
            v_attempt.customer_id, v_attempt.attempt_id, v_attempt.claim_epoch, 'SUCCEEDED',
            coalesce(p_gateway_payment_id, v_attempt.gateway_payment_id), coalesce(p_amount, v_attempt.amount),
            v_attempt.currency, NULL, NULL, NULL, 'ENGINE'
        )::billing.charge_result
    ];
    PERFORM billing.lock_for_settlement(v_results);
    SELECT s.* INTO STRICT v_settlement FROM billing.settle_round(v_results, p_as_of) AS s;
    IF v_settlement.verdict <> 'APPLIED' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB335',
            MESSAGE = format('the payment could not be booked to attempt %s', v_attempt.attempt_id),
            DETAIL = v_settlement.verdict,
            HINT = 'Another payment id is known for it, or the payment is booked to another attempt.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.decide_attempt IS
'Gives an attempt the outcome that an operator has found in the books of the gateway, or has it looked up again.';
