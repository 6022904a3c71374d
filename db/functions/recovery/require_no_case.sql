CREATE OR REPLACE FUNCTION billing.require_no_case(
    p_invoice billing.invoice
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the invoice
-- Writes:     nothing
-- Raises:     SB332 a case about its money is open; its id stands in DETAIL
-- Idempotent: yes
DECLARE
    v_case_id bigint;
BEGIN
    SELECT c.case_id
    INTO v_case_id
    FROM billing.reconciliation_case AS c
    WHERE c.customer_id = p_invoice.customer_id AND c.invoice_id = p_invoice.invoice_id AND c.resolved_at IS NULL
    ORDER BY c.case_id
    LIMIT 1;
    IF found THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB332',
            MESSAGE = format('a case about the money of invoice %s is open', p_invoice.invoice_id),
            DETAIL = v_case_id::text,
            HINT = 'billing_ops.resolve_case closes it.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_no_case IS
'Refuses to move money of an invoice while a person is looking into it.';
