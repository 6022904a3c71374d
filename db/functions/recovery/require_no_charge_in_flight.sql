CREATE OR REPLACE FUNCTION billing.require_no_charge_in_flight(
    p_invoice billing.invoice
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the invoice
-- Writes:     nothing
-- Raises:     SB306 an attempt is open; its status stands in DETAIL
-- Idempotent: yes
-- An attempt that was definitely never executed and is in nobody's hands is none: release_attempts ends it.
DECLARE
    v_attempt billing.payment_attempt;
BEGIN
    SELECT a.*
    INTO v_attempt
    FROM billing.payment_attempt AS a
    WHERE a.customer_id = p_invoice.customer_id
      AND a.invoice_id = p_invoice.invoice_id
      AND a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
      AND NOT (a.status = 'STARTED' AND a.lease_until IS NULL AND a.refusal_count >= a.send_count);
    IF found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB306',
            MESSAGE = format('a charge for invoice %s is in flight', p_invoice.invoice_id),
            DETAIL = v_attempt.status,
            HINT = 'Wait for its outcome.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_no_charge_in_flight IS
'Refuses to touch an invoice whose attempt may have charged, or may yet.';
