CREATE OR REPLACE FUNCTION billing.close_webhooks(
    p_matches billing.webhook_match[],
    p_settlements billing.settlement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; webhook events are locked by the caller
-- Writes:     webhook_event, reconciliation_case
-- Raises:     nothing
-- Idempotent: yes
-- An event that matches nothing is tried every 30 seconds for an hour, since it may be ahead of our own commit.
BEGIN
    UPDATE billing.webhook_event AS w
    SET status = CASE
            WHEN m.way = 'UNMATCHED' AND w.received_wall_at > clock_timestamp() - interval '1 hour' THEN 'UNMATCHED'
            WHEN m.way IN ('UNMATCHED', 'AMBIGUOUS') THEN 'CASE'
            WHEN m.way = 'SETTLE' THEN CASE v.verdict WHEN 'STALE' THEN 'IGNORED' ELSE v.verdict END
            ELSE m.way
        END,
        customer_id = CASE WHEN m.way NOT IN ('AMBIGUOUS', 'REJECTED') THEN m.customer_id END,
        attempt_id = CASE WHEN m.way NOT IN ('AMBIGUOUS', 'REJECTED') THEN m.attempt_id END,
        next_try_at = clock_timestamp() + interval '30 seconds',
        processed_at = CASE
            WHEN m.way <> 'UNMATCHED' OR w.received_wall_at <= clock_timestamp() - interval '1 hour' THEN p_as_of
        END
    FROM unnest(p_matches) AS m
    LEFT JOIN LATERAL (
        -- Two events about one attempt in one batch: the stronger verdict is that of the attempt.
        SELECT min(s.verdict) AS verdict
        FROM unnest(p_settlements) AS s
        WHERE s.customer_id = m.customer_id AND s.attempt_id = m.attempt_id AND s.outcome = (m.result).outcome
    ) AS v ON true
    WHERE w.webhook_event_id = m.webhook_event_id;

    INSERT INTO billing.reconciliation_case (kind, webhook_event_id, amount, currency, detail, opened_at)
    SELECT
        CASE m.way WHEN 'AMBIGUOUS' THEN 'AMBIGUOUS_WEBHOOK' ELSE 'UNMATCHED_WEBHOOK' END,
        w.webhook_event_id, (m.result).amount, (m.result).currency, w.payload, p_as_of
    FROM unnest(p_matches) AS m
    INNER JOIN billing.webhook_event AS w ON w.webhook_event_id = m.webhook_event_id
    WHERE w.status = 'CASE'
    ORDER BY w.webhook_event_id;
END;
$function$;

COMMENT ON FUNCTION billing.close_webhooks IS
'Writes what became of each webhook, and opens a case for what matches nothing after an hour, or two attempts at once.';
