CREATE OR REPLACE FUNCTION billing.record_settlements(
    p_judgements billing.judgement[],
    p_moves billing.status_move[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; subscriptions are locked by the caller
-- Writes:     subscription (event_seq), subscription_event, outbox_event
-- Raises:     nothing of its own
-- Idempotent: no
DECLARE
    v_happenings billing.happening[];
BEGIN
    SELECT array_agg(
        ROW(
            n.customer_id, n.subscription_id, s.event_seq + n.no, n.event_type, n.from_status, n.to_status,
            n.invoice_id, n.attempt_id,
            CASE
                WHEN n.to_status IS NOT NULL THEN jsonb_build_object('row', billing.logged_row(s))
                ELSE billing.with_grace(n.detail, s)
            END,
            n.event_type <> 'RetryPassed'
        )::billing.happening
        ORDER BY n.customer_id, n.subscription_id, n.no
    )
    INTO v_happenings
    FROM (
        SELECT
            x.*,
            row_number() OVER (
                PARTITION BY x.customer_id, x.subscription_id ORDER BY x.place, x.invoice_id, x.attempt_id
            ) AS no
        FROM (
            SELECT
                e.customer_id, e.subscription_id, e.place, e.event_type, NULL::text AS from_status,
                NULL::text AS to_status, e.invoice_id, e.attempt_id, e.detail
            FROM billing.invoice_happenings(p_judgements) AS e
            UNION ALL
            SELECT
                m.customer_id, m.subscription_id, 2,
                CASE
                    WHEN m.to_status = 'PAST_DUE' THEN 'SubscriptionPastDue'
                    WHEN m.from_status = 'PAST_DUE' THEN 'SubscriptionRecovered'
                    ELSE 'SubscriptionActivated'
                END,
                m.from_status, m.to_status, NULL, NULL, NULL
            FROM unnest(p_moves) AS m
        ) AS x
    ) AS n
    INNER JOIN billing.subscription AS s
        ON s.customer_id = n.customer_id AND s.subscription_id = n.subscription_id;
    IF v_happenings IS NULL THEN
        RETURN;
    END IF;

    PERFORM billing.take_event_numbers(v_happenings);
    PERFORM billing.record_happenings(v_happenings, p_as_of);
END;
$function$;

COMMENT ON FUNCTION billing.record_settlements IS
'Numbers and records what judgements brought about: payments, failures, actions, unexpected money, and the moves of their subscriptions.';
