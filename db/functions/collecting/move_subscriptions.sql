CREATE OR REPLACE FUNCTION billing.move_subscriptions(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS billing.status_move[]
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      nothing; subscriptions are locked by the caller
-- Writes:     subscription, subscription_period, invoice (checkouts)
-- Raises:     nothing of its own
-- Idempotent: yes
-- Decided from the rows as they are now, one row per subscription, however many of its invoices stand in the batch.
DECLARE
    v_moves billing.status_move[];
BEGIN
    SELECT coalesce(
        array_agg(
            ROW(m.customer_id, m.subscription_id, m.status, m.to_status)::billing.status_move
            ORDER BY m.customer_id, m.subscription_id
        ),
        '{}'
    )
    INTO v_moves
    FROM (
        SELECT
            s.customer_id,
            s.subscription_id,
            s.status,
            CASE s.status
                WHEN 'INCOMPLETE' THEN CASE WHEN k.paid THEN 'ACTIVE' END
                WHEN 'TRIALING' THEN CASE WHEN o.failing THEN 'PAST_DUE' WHEN k.paid THEN 'ACTIVE' END
                WHEN 'ACTIVE' THEN CASE WHEN o.failing THEN 'PAST_DUE' END
                WHEN 'PAST_DUE' THEN CASE WHEN NOT o.owing THEN 'ACTIVE' END
            END AS to_status
        FROM (
            SELECT
                j.customer_id,
                j.subscription_id,
                bool_or(
                    (i.status = 'PAID' OR i.forgiven_by IS NOT NULL) AND i.kind IN ('INITIAL', 'RENEWAL')
                ) AS paid
            FROM unnest(p_judgements) AS j
            INNER JOIN billing.invoice AS i ON i.customer_id = j.customer_id AND i.invoice_id = j.invoice_id
            WHERE j.verdict = 'APPLIED' AND j.subscription_id IS NOT NULL
            GROUP BY j.customer_id, j.subscription_id
        ) AS k
        INNER JOIN billing.subscription AS s
            ON s.customer_id = k.customer_id AND s.subscription_id = k.subscription_id
        CROSS JOIN LATERAL (
            SELECT coalesce(bool_or(i.failure_count > 0), false) AS failing, count(*) > 0 AS owing
            FROM billing.invoice AS i
            WHERE i.customer_id = s.customer_id
              AND i.subscription_id = s.subscription_id
              AND i.status = 'OPEN'
              AND i.drives_status
        ) AS o
    ) AS m
    WHERE m.to_status IS NOT NULL;

    IF EXISTS (SELECT FROM unnest(v_moves) AS m WHERE m.from_status = 'INCOMPLETE') THEN
        PERFORM billing.activate_checkouts(v_moves, p_as_of);
    END IF;
    IF EXISTS (SELECT FROM unnest(v_moves) AS m WHERE m.from_status <> 'INCOMPLETE') THEN
        PERFORM billing.write_status_moves(v_moves, p_as_of);
    END IF;
    PERFORM billing.recount_grace(p_judgements);
    RETURN v_moves;
END;
$function$;

COMMENT ON FUNCTION billing.move_subscriptions IS
'Activates, makes past due or recovers the subscriptions whose invoices were paid or declined, and returns the moves.';
