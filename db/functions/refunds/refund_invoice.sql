CREATE OR REPLACE FUNCTION billing_api.refund_invoice(
    p_invoice_id bigint,
    p_amount bigint DEFAULT NULL,
    p_idempotency_key text DEFAULT NULL,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing_api.refund
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      idempotency_key -> subscription -> invoice
-- Writes:     idempotency_key, refund, subscription (version)
-- Raises:     SB101 no key, SB104 p_as_of, SB106 amount, SB204 invoice, SB305 key used with other arguments,
--             SB330 more than is left, which stands in DETAIL
-- Idempotent: yes, by p_idempotency_key, which is required and unique for ever
-- Nothing is sent here. Refunds on their way count, so two calls at once cannot send back more than was paid.
DECLARE
    v_customer_id bigint := billing.customer_of_invoice(p_invoice_id);
    v_replay jsonb;
    v_as_of timestamptz;
    v_invoice billing.invoice;
    v_left bigint;
    v_refund_ids bigint[];
BEGIN
    PERFORM billing.require_text(p_idempotency_key, 'p_idempotency_key', 255);
    IF p_amount IS NOT NULL THEN
        PERFORM billing.require_amount(p_amount, 'p_amount', 1);
    END IF;
    v_replay := billing.claim_idempotency_key(
        v_customer_id, 'refund_invoice', p_idempotency_key,
        jsonb_build_object('invoiceId', p_invoice_id, 'amount', p_amount), true, p_as_of
    );
    IF v_replay IS NOT NULL THEN
        RETURN QUERY SELECT r.* FROM jsonb_populate_recordset(NULL::billing_api.refund, v_replay) AS r;
        RETURN;
    END IF;

    v_as_of := billing.require_as_of(p_as_of);
    v_invoice := billing.lock_invoice(v_customer_id, p_invoice_id);
    v_left := billing.refundable_of_invoice(v_invoice);
    IF v_left = 0 OR p_amount > v_left THEN
        RAISE EXCEPTION USING
            ERRCODE = 'SB330',
            MESSAGE = format('of invoice %s %s %s are left to refund', p_invoice_id, v_left, v_invoice.currency),
            DETAIL = v_left::text;
    END IF;
    PERFORM billing.outdate_snapshots(v_invoice);
    v_refund_ids := billing.request_refunds(
        v_customer_id, ARRAY[p_invoice_id], coalesce(p_amount, v_left), 'REQUESTED', v_as_of
    );

    PERFORM billing.store_response(
        v_customer_id, 'refund_invoice', p_idempotency_key,
        (
            SELECT jsonb_agg(to_jsonb(r) ORDER BY r.refund_id)
            FROM billing_api.refund AS r
            WHERE r.customer_id = v_customer_id AND r.refund_id = ANY (v_refund_ids)
        )
    );
    RETURN QUERY
    SELECT r.*
    FROM billing_api.refund AS r
    WHERE r.customer_id = v_customer_id AND r.refund_id = ANY (v_refund_ids)
    ORDER BY r.refund_id;
END;
$function$;

COMMENT ON FUNCTION billing_api.refund_invoice IS
'Sends back p_amount minor units of what an invoice was paid through a gateway; NULL = all that is left. Returns the refunds, one per payment that captured it; they are sent by the workers, and RefundIssued tells when the money went.';
