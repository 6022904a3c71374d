CREATE OR REPLACE FUNCTION billing_api.retry_invoice(
    p_invoice_id bigint,
    p_payment_method_id bigint DEFAULT NULL,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.invoice
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> subscription -> invoice -> payment_attempt
-- Writes:     idempotency_key, invoice, payment_attempt, subscription, subscription_event
-- Raises:     SB101 key, SB104 p_as_of, SB204 invoice, SB205 payment method, SB305 key used with other arguments,
--             SB306 a charge is in flight, SB307 neither OPEN nor FAILED, SB332 a case is open, SB333 the card network
--             allows no further try now
-- Idempotent: yes, by p_idempotency_key; twice without a key is still one attempt
-- Nothing is charged here: the invoice is due at once, ahead of all others, for one attempt that uses no rung. Where the
-- customer has yet to complete an action, that goes on and nothing new is started.
DECLARE
    v_customer_id bigint := billing.customer_of_invoice(p_invoice_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_invoice billing.invoice;
BEGIN
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'retry_invoice', p_idempotency_key,
        jsonb_build_object('invoiceId', p_invoice_id, 'paymentMethodId', p_payment_method_id), false, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_record(NULL::billing_api.invoice, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    v_invoice := billing.lock_invoice(v_customer_id, p_invoice_id);
    IF v_invoice.status NOT IN ('OPEN', 'FAILED') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB307',
            MESSAGE = format('invoice %s is %s', p_invoice_id, v_invoice.status),
            DETAIL = v_invoice.status;
    END IF;
    IF NOT billing.awaits_action(v_invoice, p_payment_method_id, v_as_of) THEN
        PERFORM billing.make_due_at_once(v_invoice, p_payment_method_id, v_as_of);
    END IF;

    RETURN QUERY SELECT r.* FROM billing.answer_invoice(
        'retry_invoice', v_customer_id, p_invoice_id, p_idempotency_key
    ) AS r;
END;
$function$;

COMMENT ON FUNCTION billing_api.retry_invoice IS
'Makes one attempt to collect an open invoice, or the debt of a subscription that has ended, at once: with p_payment_method_id, which the invoice then keeps, or with the method that it would use anyway. Refused while a charge is in flight.';
