CREATE OR REPLACE FUNCTION billing.step_dunning(
    p_judgements billing.judgement[],
    p_as_of timestamptz
)
RETURNS void
LANGUAGE sql
SET search_path = ''
AS $function$
    -- Locks:      nothing; invoices are locked by the caller
    -- Writes:     invoice
    -- Raises:     nothing
    -- Idempotent: no
    -- Checkouts and pay-first changes have no ladder, nor has a debt, which waits for its customer again. Grace runs from
    -- the later of period start and issue. An attempt that the customer asked for between two rungs uses none, so the rung
    -- that was planned stands. Nobody waits for a retry.
    UPDATE billing.invoice AS i
    SET failure_count = d.failure_count,
        first_failed_at = d.first_failed_at,
        last_failed_at = d.last_failed_at,
        held_until = NULL,
        next_attempt_at = d.next_rung,
        lane = CASE WHEN d.climbs OR i.status = 'FAILED' THEN 'BACKLOG' ELSE i.lane END,
        dunning_ends_at = CASE
            WHEN d.climbs AND d.next_rung IS NULL
            THEN coalesce(i.dunning_ends_at, greatest(p_as_of, d.grace_ends_at))
        END
    FROM (
        SELECT
            o.customer_id,
            o.invoice_id,
            k.climbs,
            o.failure_count + CASE WHEN x.is_extra THEN 0 ELSE 1 END AS failure_count,
            coalesce(o.first_failed_at, p_as_of) AS first_failed_at,
            CASE WHEN x.is_extra THEN o.last_failed_at ELSE p_as_of END AS last_failed_at,
            CASE
                WHEN x.is_extra THEN pl.planned_rung
                WHEN k.climbs
                THEN billing.next_rung(
                    dp, o.failure_count + 1, coalesce(o.first_failed_at, p_as_of), p_as_of, o.invoice_id
                )
            END AS next_rung,
            greatest(o.period_start, o.issued_at) + dp.grace AS grace_ends_at
        FROM unnest(p_judgements) AS j
        INNER JOIN billing.invoice AS o ON o.customer_id = j.customer_id AND o.invoice_id = j.invoice_id
        LEFT JOIN billing.subscription AS s
            ON s.customer_id = o.customer_id AND s.subscription_id = o.subscription_id
        INNER JOIN billing.dunning_policy AS dp
            ON dp.dunning_policy_id = coalesce(o.dunning_policy_id, s.dunning_policy_id)
        CROSS JOIN LATERAL (
            SELECT o.status = 'OPEN' AND (o.drives_status OR o.kind = 'MANUAL') AS climbs
        ) AS k
        CROSS JOIN LATERAL (
            SELECT billing.next_rung(dp, o.failure_count, o.first_failed_at, o.last_failed_at, o.invoice_id) AS planned_rung
        ) AS pl
        CROSS JOIN LATERAL (
            SELECT
                k.climbs AND o.lane = 'INTERACTIVE' AND o.failure_count > 0
                AND coalesce(pl.planned_rung > p_as_of, true) AS is_extra
        ) AS x
        WHERE j.verdict = 'APPLIED'
          AND (j.attempt_status = 'DECLINED' OR j.outcome = 'PASSED')
          AND o.status IN ('OPEN', 'FAILED')
    ) AS d
    WHERE i.customer_id = d.customer_id AND i.invoice_id = d.invoice_id;
$function$;

COMMENT ON FUNCTION billing.step_dunning IS
'Moves each declined invoice one step up its ladder; where there is no next rung, says when dunning ends.';
