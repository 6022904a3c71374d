CREATE OR REPLACE FUNCTION billing_ops.resolve_case(
    p_case_id bigint,
    p_resolution text,
    p_outcome text DEFAULT NULL,
    p_gateway_id text DEFAULT NULL,
    p_amount bigint DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.reconciliation_case
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      subscription -> invoice -> payment_attempt -> as settle_attempts; the case last
-- Writes:     reconciliation_case, payment_attempt, payment_report, invoice; with CHARGED as settle_attempts
-- Raises:     SB101 malformed, SB104 p_as_of, SB105, SB106 amount, SB209 case, SB334 resolved before,
--             SB335 the attempt has an outcome already
-- Idempotent: no; a case is resolved once
-- CHARGED: the money did move, as p_gateway_id and p_amount (default: what was asked for). NOT_CHARGED: it did not and
-- will not, the attempt ends and the invoice is due again. REFUNDED, NOT_REFUNDED: the same of a refund, which may then
-- be asked for anew. NULL: attempt or refund go on being looked up.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_case billing.reconciliation_case;
BEGIN
    PERFORM billing.require_text(p_resolution, 'p_resolution', 2000);
    IF p_outcome IS NOT NULL THEN
        PERFORM billing.require_choice(p_outcome, 'p_outcome', '{CHARGED,NOT_CHARGED,REFUNDED,NOT_REFUNDED}');
    END IF;
    IF p_gateway_id IS NOT NULL THEN
        PERFORM billing.require_text(p_gateway_id, 'p_gateway_id', 255);
    END IF;
    IF p_amount IS NOT NULL THEN
        PERFORM billing.require_amount(p_amount, 'p_amount', 1);
    END IF;

    SELECT c.* INTO v_case FROM billing.reconciliation_case AS c WHERE c.case_id = p_case_id;
    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB209',
            MESSAGE = format('case %s does not exist', coalesce(p_case_id::text, 'NULL'));
    END IF;
    IF v_case.invoice_id IS NOT NULL THEN
        PERFORM billing.lock_invoice(v_case.customer_id, v_case.invoice_id);
    END IF;
    UPDATE billing.reconciliation_case AS c
    SET resolved_at = v_as_of, resolved_by = billing.actor(), resolution = concat_ws(': ', p_outcome, p_resolution)
    WHERE c.case_id = p_case_id AND c.resolved_at IS NULL
    RETURNING c.* INTO v_case;
    IF NOT found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB334',
            MESSAGE = format('case %s was resolved before', p_case_id),
            DETAIL = (SELECT c.resolution FROM billing.reconciliation_case AS c WHERE c.case_id = p_case_id);
    END IF;

    IF (p_outcome LIKE '%REFUNDED') <> (v_case.refund_id IS NOT NULL) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB101',
            MESSAGE = format('p_outcome %s does not fit a case of kind %s', p_outcome, v_case.kind),
            HINT = 'CHARGED and NOT_CHARGED decide an attempt, REFUNDED and NOT_REFUNDED a refund.';
    END IF;
    IF v_case.refund_id IS NOT NULL THEN
        PERFORM billing.decide_refund(v_case, p_outcome, p_gateway_id, v_as_of);
    ELSE
        PERFORM billing.decide_attempt(v_case, p_outcome, p_gateway_id, p_amount, v_as_of);
        PERFORM billing.go_on_collecting(v_case, v_as_of);
    END IF;
    RETURN NEXT v_case;
END;
$function$;

COMMENT ON FUNCTION billing_ops.resolve_case IS
'Closes a case with who and why, and has the engine go on with what it waited for. p_outcome decides what stayed unknown by what the gateway''s own books say: CHARGED or NOT_CHARGED of an attempt, REFUNDED or NOT_REFUNDED of a refund, with its id there as p_gateway_id.';
