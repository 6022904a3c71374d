CREATE OR REPLACE FUNCTION billing.require_no_open_invoice(
    p_subscription billing.subscription
)
RETURNS void
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $function$
-- Locks:      nothing; the caller holds the subscription
-- Writes:     nothing
-- Raises:     SB320 an invoice is open; its id in DETAIL
-- Idempotent: yes
DECLARE
    v_invoice_id bigint;
BEGIN
    SELECT min(i.invoice_id)
    INTO v_invoice_id
    FROM billing.invoice AS i
    WHERE i.customer_id = p_subscription.customer_id
      AND i.subscription_id = p_subscription.subscription_id
      AND i.status = 'OPEN';
    IF v_invoice_id IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB320',
            MESSAGE = format('an invoice of subscription %s is open', p_subscription.subscription_id),
            DETAIL = v_invoice_id::text,
            HINT = 'Settle it first.';
    END IF;
END;
$function$;

COMMENT ON FUNCTION billing.require_no_open_invoice IS 'Raises SB320 while an invoice of the subscription is open.';
