CREATE OR REPLACE FUNCTION billing.require_voidable(
    p_invoice billing.invoice
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds subscription and invoice
-- Writes:     nothing
-- Raises:     SB303 an unpaid checkout, SB306 a charge is in flight, SB307 in another status, or something was already
--             given for it, SB331 a refund is on its way
-- Idempotent: yes
-- Credit that paid it can go back only as long as nothing else was computed from what was paid for its period.
BEGIN
    IF EXISTS (
        SELECT 1
        FROM billing.refund AS f
        WHERE f.customer_id = p_invoice.customer_id AND f.invoice_id = p_invoice.invoice_id
          AND f.status IN ('REQUESTED', 'STARTED', 'UNKNOWN', 'PROCESSING')
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB331',
            MESSAGE = format('a refund of invoice %s is on its way', p_invoice.invoice_id);
    END IF;
    PERFORM billing.require_no_charge_in_flight(p_invoice);
    IF p_invoice.status = 'VOID' OR p_invoice.amount_paid > p_invoice.amount_refunded OR (
        p_invoice.status = 'PAID' AND (
            p_invoice.amount_paid + p_invoice.carried > 0
            OR p_invoice.credit_applied = 0
            OR billing.was_built_upon(p_invoice)
        )
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB307',
            MESSAGE = format('invoice %s is %s and cannot be voided', p_invoice.invoice_id, p_invoice.status),
            DETAIL = p_invoice.status,
            HINT = 'What was paid with money is given back by refund_invoice.';
    END IF;
    IF EXISTS (
        SELECT 1
        FROM billing.subscription AS s
        WHERE s.customer_id = p_invoice.customer_id AND s.subscription_id = p_invoice.subscription_id
          AND s.status = 'INCOMPLETE'
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB303',
            MESSAGE = format('invoice %s is that of a checkout', p_invoice.invoice_id),
            HINT = 'Cancel the subscription; to give it away, sign up anew and grant first.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_voidable IS
'Refuses to void an invoice that money has paid, that may be paid at this moment, or from whose payment something was given already.';
