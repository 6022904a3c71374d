CREATE OR REPLACE FUNCTION billing.record_refunds(
    p_judgements billing.refund_judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      customer (its event counter); subscriptions are locked by the caller
-- Writes:     subscription (event_seq), customer, subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
DECLARE
    v_happenings billing.happening[];
BEGIN
    SELECT array_agg(
        ROW(
            s.customer_id, s.subscription_id, s.event_seq + n.no, n.event_type, NULL, NULL, n.invoice_id, NULL, n.detail,
            n.published
        )::billing.happening
        ORDER BY s.customer_id, s.subscription_id, n.no
    )
    INTO v_happenings
    FROM (
        SELECT
            h.*,
            row_number() OVER (PARTITION BY h.customer_id, h.subscription_id ORDER BY h.refund_id) AS no
        FROM billing.refund_happenings(p_judgements) AS h
    ) AS n
    INNER JOIN billing.subscription AS s ON s.customer_id = n.customer_id AND s.subscription_id = n.subscription_id;
    PERFORM billing.take_event_numbers(v_happenings);
    PERFORM billing.record_happenings(v_happenings, p_as_of);

    PERFORM billing.record_customer_event(h.customer_id, h.event_type, h.detail, p_as_of)
    FROM billing.refund_happenings(p_judgements) AS h
    WHERE h.subscription_id IS NULL AND h.published
    ORDER BY h.customer_id, h.refund_id;
END;
$function$;

COMMENT ON FUNCTION billing.record_refunds IS
'Tells of money that went back, and of such that came back to us after all, as an event of the subscription, or of the customer where there is none; a refusal stands in the log only.';
