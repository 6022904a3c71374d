CREATE FUNCTION billing_test.settle_refund(
    p_refund_id bigint,
    p_outcome text,
    p_as_of timestamptz DEFAULT billing.now(),
    p_gateway_refund_id text DEFAULT NULL,
    p_code text DEFAULT NULL,
    p_source text DEFAULT 'SEND',
    p_amount bigint DEFAULT NULL,
    p_epoch_off integer DEFAULT 0
)
RETURNS SETOF billing.refund_settlement
LANGUAGE sql
AS $function$
    SELECT s.*
    FROM billing.refund AS f
    CROSS JOIN LATERAL billing_worker.settle_refunds(
        ARRAY[
            ROW(
                f.customer_id, f.refund_id, CASE p_source WHEN 'WEBHOOK' THEN NULL ELSE f.claim_epoch + p_epoch_off END,
                p_outcome,
                coalesce(p_gateway_refund_id, CASE p_outcome WHEN 'SUCCEEDED' THEN 'ref_' || f.refund_id END),
                coalesce(p_amount, f.amount), f.currency, p_code, NULL, p_source
            )::billing.refund_result
        ],
        p_as_of
    ) AS s
    WHERE f.refund_id = p_refund_id;
$function$;

COMMENT ON FUNCTION billing_test.settle_refund IS 'Settles one refund with what the gateway said about it.';

CREATE FUNCTION billing_test.refunds(
    p_invoice_id bigint
)
RETURNS text
LANGUAGE sql
AS $function$
    SELECT string_agg(concat_ws(' ', f.purpose, f.status, f.amount), ', ' ORDER BY f.refund_no)
    FROM billing.refund AS f
    WHERE f.invoice_id = p_invoice_id;
$function$;

COMMENT ON FUNCTION billing_test.refunds IS 'The refunds of an invoice as one line: purpose, status and amount of each.';
