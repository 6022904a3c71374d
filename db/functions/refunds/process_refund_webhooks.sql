CREATE OR REPLACE FUNCTION billing.process_refund_webhooks(
    p_webhook_event_ids bigint[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      as settle_refunds; webhook events are locked by the caller
-- Writes:     webhook_event, reconciliation_case, refund; as settle_refunds
-- Raises:     what settle_refunds raises
-- Idempotent: yes
-- What speaks against the end of a refund is a reason to ask, as is what says nothing definite.
DECLARE
    v_matches billing.refund_match[] := ARRAY(SELECT m FROM billing.match_refund_webhooks(p_webhook_event_ids) AS m);
    v_settlements billing.refund_settlement[];
BEGIN
    IF cardinality(v_matches) = 0 THEN
        RETURN;
    END IF;
    PERFORM billing.lock_for_refunds(
        ARRAY(SELECT m.result FROM unnest(v_matches) AS m WHERE m.way IN ('SETTLE', 'LOOKUP'))
    );
    v_settlements := ARRAY(
        SELECT s
        FROM billing_worker.settle_refunds(
            ARRAY(SELECT m.result FROM unnest(v_matches) AS m WHERE m.way = 'SETTLE'), p_as_of
        ) AS s
    );
    UPDATE billing.refund AS f
    SET next_lookup_at = p_as_of
    FROM unnest(v_matches) AS m
    WHERE m.way = 'LOOKUP' AND f.customer_id = m.customer_id AND f.refund_id = m.refund_id AND f.ended_at IS NULL;

    UPDATE billing.webhook_event AS w
    SET status = CASE
            WHEN m.way = 'UNMATCHED' AND w.received_wall_at > clock_timestamp() - interval '1 hour' THEN 'UNMATCHED'
            WHEN m.way IN ('UNMATCHED', 'AMBIGUOUS') THEN 'CASE'
            WHEN m.way = 'SETTLE' THEN CASE v.verdict WHEN 'STALE' THEN 'LOOKUP' ELSE v.verdict END
            ELSE m.way
        END,
        customer_id = CASE WHEN m.way NOT IN ('AMBIGUOUS', 'REJECTED') THEN m.customer_id END,
        refund_id = CASE WHEN m.way NOT IN ('AMBIGUOUS', 'REJECTED') THEN m.refund_id END,
        next_try_at = clock_timestamp() + interval '30 seconds',
        processed_at = CASE
            WHEN m.way <> 'UNMATCHED' OR w.received_wall_at <= clock_timestamp() - interval '1 hour' THEN p_as_of
        END
    FROM unnest(v_matches) AS m
    LEFT JOIN LATERAL (
        SELECT min(s.verdict) AS verdict
        FROM unnest(v_settlements) AS s
        WHERE s.customer_id = m.customer_id AND s.refund_id = m.refund_id AND s.outcome = (m.result).outcome
    ) AS v ON true
    WHERE w.webhook_event_id = m.webhook_event_id;

    INSERT INTO billing.reconciliation_case (kind, webhook_event_id, amount, currency, detail, opened_at)
    SELECT
        CASE m.way WHEN 'AMBIGUOUS' THEN 'AMBIGUOUS_WEBHOOK' ELSE 'UNMATCHED_WEBHOOK' END,
        w.webhook_event_id, (m.result).amount, (m.result).currency, w.payload, p_as_of
    FROM unnest(v_matches) AS m
    INNER JOIN billing.webhook_event AS w ON w.webhook_event_id = m.webhook_event_id
    WHERE w.status = 'CASE'
    ORDER BY w.webhook_event_id;
END;
$function$;

COMMENT ON FUNCTION billing.process_refund_webhooks IS
'Processes those of these webhook events that are about refunds; one that overtakes the response settles the refund.';
