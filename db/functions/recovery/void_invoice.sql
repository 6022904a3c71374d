CREATE OR REPLACE FUNCTION billing_api.void_invoice(
    p_invoice_id bigint,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.invoice
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> subscription -> invoice -> payment_attempt -> credit_balance -> resource, customer
-- Writes:     idempotency_key, invoice, payment_attempt, credit_entry, credit_balance, subscription, subscription_change,
--             resource, customer, subscription_event, outbox_event
-- Raises:     SB101 key, SB104 p_as_of, SB204 invoice, SB303 an unpaid checkout, SB305 key used with other arguments,
--             SB306 a charge is in flight, SB307 VOID already, or paid with money, SB331 a refund is on its way
-- Idempotent: yes, by p_idempotency_key
-- Forgiven: the period counts as covered, PAST_DUE may recover, nothing is billed again, drawn credit goes back once.
DECLARE
    v_customer_id bigint := billing.customer_of_invoice(p_invoice_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_invoice billing.invoice;
BEGIN
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'void_invoice', p_idempotency_key, jsonb_build_object('invoiceId', p_invoice_id), false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.invoice, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    v_invoice := billing.lock_invoice(v_customer_id, p_invoice_id);
    PERFORM billing.require_voidable(v_invoice);
    IF EXISTS (
        SELECT 1
        FROM billing.subscription_change AS c
        WHERE c.customer_id = v_customer_id AND c.change_id = v_invoice.change_id AND c.status = 'PENDING'
    ) THEN
        PERFORM billing.void_change(v_customer_id, v_invoice.change_id, v_as_of);
    ELSE
        PERFORM billing.forgive_invoice(v_invoice, v_as_of);
    END IF;

    RETURN QUERY SELECT r.* FROM billing.answer_invoice(
        'void_invoice', v_customer_id, p_invoice_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.void_invoice IS
'Forgives an invoice that is owed, or one that credit alone has paid: it is VOID, its period counts as covered, drawn credit goes back. What was paid with money is refunded instead.';
