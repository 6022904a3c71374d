CREATE OR REPLACE FUNCTION billing.refund_happenings(
    p_judgements billing.refund_judgement[]
)
RETURNS TABLE (
    customer_id bigint,
    subscription_id bigint,
    invoice_id bigint,
    refund_id bigint,
    event_type text,
    published boolean,
    detail jsonb
)
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- Of a failure the world hears only where it was told that the money went.
    SELECT
        i.customer_id, i.subscription_id, i.invoice_id, f.refund_id,
        CASE j.refund_status WHEN 'SUCCEEDED' THEN 'RefundIssued' ELSE 'RefundFailed' END,
        j.refund_status = 'SUCCEEDED' OR EXISTS (
            SELECT 1
            FROM billing.refund_report AS r
            WHERE r.customer_id = f.customer_id AND r.refund_id = f.refund_id
              AND r.outcome = 'SUCCEEDED' AND r.verdict = 'APPLIED'
        ),
        jsonb_build_object(
            'refundId', f.refund_id, 'invoiceId', i.invoice_id, 'amount', f.amount, 'currency', f.currency
        )
    FROM unnest(p_judgements) AS j
    INNER JOIN billing.refund AS f ON f.customer_id = j.customer_id AND f.refund_id = j.refund_id
    INNER JOIN billing.invoice AS i ON i.customer_id = f.customer_id AND i.invoice_id = f.invoice_id
    WHERE j.verdict = 'APPLIED' AND j.refund_status IN ('SUCCEEDED', 'FAILED');
$function$;

COMMENT ON FUNCTION billing.refund_happenings IS 'The events that follow from what was decided about refunds, before they are numbered.';
