CREATE OR REPLACE FUNCTION billing.process_webhook_batch(
    p_webhook_event_ids bigint[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      as settle_attempts or, where the events are about refunds, as settle_refunds; webhook events are locked by the
--             caller
-- Writes:     webhook_event, reconciliation_case, payment_attempt; as settle_attempts
-- Raises:     what settle_attempts raises
-- Idempotent: yes
-- What is to be asked about is locked with what is settled: settling locks customers, and no attempt may come after those.
DECLARE
    v_matches billing.webhook_match[] := ARRAY(
        SELECT m FROM billing.match_webhooks(p_webhook_event_ids) AS m
    );
    v_settlements billing.settlement[];
BEGIN
    IF cardinality(v_matches) > 0 THEN
        PERFORM billing.lock_for_settlement(
            ARRAY(SELECT m.result FROM unnest(v_matches) AS m WHERE m.way IN ('SETTLE', 'LOOKUP'))
        );
        v_settlements := ARRAY(
            SELECT s
            FROM billing_worker.settle_attempts(
                ARRAY(SELECT m.result FROM unnest(v_matches) AS m WHERE m.way = 'SETTLE'), p_as_of
            ) AS s
        );
        PERFORM billing.look_up_at_once(v_matches, p_as_of);
        PERFORM billing.close_webhooks(v_matches, v_settlements, p_as_of);
    END IF;
    PERFORM billing.process_refund_webhooks(p_webhook_event_ids, p_as_of);
END;
$function$;

COMMENT ON FUNCTION billing.process_webhook_batch IS
'Matches webhooks to attempts, settles those that are definite, asks the gateway about the others.';
