CREATE OR REPLACE FUNCTION billing.require_removable_method(
    p_method billing.payment_method
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the open invoices, so that no attempt begins meanwhile
-- Writes:     nothing
-- Raises:     SB311 a charge with it is in flight, or money is owed and it is the last method
-- Idempotent: yes
BEGIN
    IF EXISTS (
        SELECT 1
        FROM billing.payment_attempt AS a
        WHERE a.customer_id = p_method.customer_id
          AND a.payment_method_id = p_method.payment_method_id
          AND a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB311',
            MESSAGE = format('payment method %s has a charge in flight', p_method.payment_method_id),
            HINT = 'Wait for its outcome.';
    END IF;
    -- What a checkout asks for is not owed: nothing was delivered yet.
    IF NOT EXISTS (
        SELECT 1
        FROM billing.payment_method AS m
        WHERE m.customer_id = p_method.customer_id
          AND m.payment_method_id <> p_method.payment_method_id
          AND m.removed_at IS NULL
    ) AND EXISTS (
        SELECT 1
        FROM billing.invoice AS i
        WHERE i.customer_id = p_method.customer_id
          AND i.status = 'OPEN'
          AND i.amount_due > 0
          AND (i.drives_status OR i.kind = 'MANUAL')
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB311',
            MESSAGE = format('payment method %s is the last one, and money is owed', p_method.payment_method_id),
            HINT = 'Add another one first, or pay.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_removable_method IS
'Raises SB311 where a payment method cannot be removed: a charge is in flight, or it is the last one while money is owed.';
