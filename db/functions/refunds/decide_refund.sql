CREATE OR REPLACE FUNCTION billing.decide_refund(
    p_case billing.reconciliation_case,
    p_outcome text,
    p_gateway_refund_id text,
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      refund; with REFUNDED as settle_refunds; the caller holds subscription and invoice
-- Writes:     refund; with REFUNDED as settle_refunds
-- Raises:     SB101 no refund id, SB335 the refund has an outcome already
-- Idempotent: no
DECLARE
    v_refund billing.refund;
    v_verdict text;
BEGIN
    SELECT f.*
    INTO v_refund
    FROM billing.refund AS f
    WHERE f.customer_id = p_case.customer_id AND f.refund_id = p_case.refund_id
    FOR NO KEY UPDATE;
    IF p_outcome IS NULL THEN
        UPDATE billing.refund AS f
        SET next_lookup_at = p_as_of
        WHERE f.customer_id = v_refund.customer_id AND f.refund_id = v_refund.refund_id AND f.status <> 'FAILED';
        RETURN;
    END IF;
    IF v_refund.status = 'SUCCEEDED' OR v_refund.lease_until > clock_timestamp()
        OR (p_outcome = 'NOT_REFUNDED' AND v_refund.ended_at IS NOT NULL)
    THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB335',
            MESSAGE = format('refund %s has an outcome, or is being asked about', v_refund.refund_id),
            DETAIL = v_refund.status;
    END IF;
    IF p_outcome = 'NOT_REFUNDED' THEN
        UPDATE billing.refund AS f
        SET status = 'FAILED', failure_code = 'decided_by_operator', ended_at = p_as_of, lease_until = NULL,
            next_send_at = NULL, next_lookup_at = NULL, claim_epoch = f.claim_epoch + 1
        WHERE f.customer_id = v_refund.customer_id AND f.refund_id = v_refund.refund_id;
        RETURN;
    END IF;

    SELECT s.verdict
    INTO STRICT v_verdict
    FROM billing_worker.settle_refunds(
        ARRAY[
            ROW(
                v_refund.customer_id, v_refund.refund_id, v_refund.claim_epoch, 'SUCCEEDED',
                coalesce(p_gateway_refund_id, v_refund.gateway_refund_id), v_refund.amount, v_refund.currency, NULL,
                NULL, 'LOOKUP'
            )::billing.refund_result
        ],
        p_as_of
    ) AS s;
    IF v_verdict <> 'APPLIED' THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB335',
            MESSAGE = format('it could not be booked to refund %s', v_refund.refund_id),
            DETAIL = v_verdict,
            HINT = 'Another refund id is known for it, that one is booked to another refund, or all of it went back by another.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.decide_refund IS
'Gives a refund the outcome that an operator has found in the books of the gateway, or has it looked up again.';
