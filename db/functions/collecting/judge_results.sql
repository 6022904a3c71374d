CREATE OR REPLACE FUNCTION billing.judge_results(
    p_results billing.charge_result[],
    p_as_of timestamptz
)
RETURNS billing.judgement[]
LANGUAGE sql
STABLE
SET search_path = ''
AS $function$
    -- Locks:      nothing; everything is locked by the step before
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- The only step of settling that decides what is to be believed. The table stands in docs/collecting.md.
    SELECT coalesce(
        array_agg(
            ROW(
                r.customer_id, r.attempt_id, i.invoice_id, i.subscription_id, r.source, r.claim_epoch, r.outcome,
                v.verdict,
                CASE WHEN v.verdict = 'APPLIED' THEN n.status ELSE a.status END,
                r.gateway_payment_id, coalesce(r.amount, a.amount), r.currency,
                CASE WHEN n.expired THEN 'action_expired' ELSE r.code END,
                CASE WHEN n.status = 'DECLINED'
                     THEN CASE WHEN n.expired THEN 'SOFT' ELSE billing.decline_class(g.adapter, r.code) END
                END,
                CASE WHEN n.status = 'REQUIRES_ACTION' THEN x.action_expires_at END,
                CASE WHEN r.outcome = 'NOT_ATTEMPTED'
                     THEN greatest(coalesce(r.retry_after, 0), least(60, 2 ^ least(a.refusal_count, 6)))
                END,
                -- A new try takes the place of one that was never executed.
                CASE WHEN n.status = 'ABANDONED' THEN p_as_of ELSE billing.resend_at(a, g, r.result, f.rounds, p_as_of) END,
                billing.next_lookup_at(a, g, r.result, n.status, x.action_expires_at, p_as_of),
                CASE WHEN r.outcome = 'NOT_FOUND' THEN f.not_founds ELSE 0 END,
                f.rounds,
                CASE WHEN n.status = 'SUCCEEDED' AND v.verdict = 'APPLIED' THEN m.captured END,
                CASE WHEN n.status = 'SUCCEEDED' AND v.verdict = 'APPLIED' THEN coalesce(r.amount, a.amount) - m.captured END,
                CASE
                    WHEN v.verdict = 'REJECTED'
                    THEN CASE
                        WHEN r.currency <> a.currency THEN 'CURRENCY_MISMATCH'
                        WHEN b.is_beyond AND r.outcome = 'SUCCEEDED' THEN 'AMOUNT_MISMATCH'
                        ELSE 'BINDING_MISMATCH'
                    END
                    WHEN v.verdict <> 'APPLIED' THEN NULL
                    WHEN n.status = 'SUCCEEDED' AND r.amount < a.amount THEN 'AMOUNT_MISMATCH'
                    WHEN r.outcome = 'NOT_FOUND' AND f.rounds > a.not_found_rounds AND n.status <> 'ABANDONED'
                        AND billing.resend_at(a, g, r.result, f.rounds, p_as_of) IS NULL
                    THEN 'UNKNOWN_OUTCOME'
                    WHEN r.outcome = 'PROCESSING' AND p_as_of >= a.started_at + g.processing_deadline
                    THEN 'UNKNOWN_OUTCOME'
                END,
                n.status = 'REQUIRES_ACTION' AND (
                    a.status <> 'REQUIRES_ACTION' OR a.action_expires_at IS DISTINCT FROM x.action_expires_at
                )
            )::billing.judgement
            ORDER BY r.customer_id, r.attempt_id
        ),
        '{}'
    )
    FROM (
        -- One payment cannot belong to two attempts, also where both name it in one batch.
        SELECT
            u.*,
            u AS result,
            u.gateway_payment_id IS NOT NULL AND row_number() OVER (
                PARTITION BY o.gateway_account_id, u.gateway_payment_id
                ORDER BY billing.outcome_rank(u.outcome) DESC NULLS LAST, u.customer_id, u.attempt_id
            ) > 1 AS names_payment_of_another
        FROM unnest(p_results) AS u
        INNER JOIN billing.payment_attempt AS o ON o.customer_id = u.customer_id AND o.attempt_id = u.attempt_id
    ) AS r
    INNER JOIN billing.payment_attempt AS a ON a.customer_id = r.customer_id AND a.attempt_id = r.attempt_id
    INNER JOIN billing.invoice AS i ON i.customer_id = a.customer_id AND i.invoice_id = a.invoice_id
    LEFT JOIN billing.gateway_account AS g ON g.gateway_account_id = a.gateway_account_id
    CROSS JOIN LATERAL (
        -- A "not found" counts after the settle window; two of them make a round.
        SELECT
            CASE WHEN w.counts AND a.not_found_count >= 1 THEN 0
                 ELSE a.not_found_count + w.counts::integer
            END AS not_founds,
            a.not_found_rounds + (w.counts AND a.not_found_count >= 1)::integer AS rounds
        FROM (
            SELECT r.outcome = 'NOT_FOUND' AND p_as_of >= coalesce(a.last_sent_at, a.started_at) + g.settle_window AS counts
        ) AS w
    ) AS f
    -- A debt that nobody asks to pay is as closed as a void invoice.
    CROSS JOIN LATERAL (SELECT i.status = 'OPEN' OR (i.status = 'FAILED' AND i.lane = 'INTERACTIVE') AS is_collected) AS c
    CROSS JOIN LATERAL (
        -- A look-up that names no expiry leaves the one that is known. No action fences an invoice off for longer than a
        -- week, whatever the gateway says.
        SELECT least(
            coalesce(r.action_expires_at, a.action_expires_at, p_as_of + interval '23 hours'), p_as_of + interval '7 days'
        ) AS action_expires_at
    ) AS x
    CROSS JOIN LATERAL (
        SELECT
            r.outcome = 'REQUIRES_ACTION' AND x.action_expires_at <= p_as_of AS expired,
            CASE
                WHEN r.outcome = 'SUCCEEDED' AND g.confirm_success AND r.source = 'SEND' THEN 'UNKNOWN'
                WHEN r.outcome = 'REQUIRES_ACTION' AND x.action_expires_at <= p_as_of THEN 'DECLINED'
                -- Not executed this time; if no send was, nothing binds us to this try once it cannot be sent any more.
                WHEN r.outcome = 'NOT_ATTEMPTED' AND a.status = 'STARTED'
                THEN CASE
                    WHEN a.refusal_count + 1 < a.send_count THEN 'UNKNOWN'
                    WHEN NOT c.is_collected OR NOT billing.key_is_alive(a, g, p_as_of) THEN 'ABANDONED'
                    ELSE 'STARTED'
                END
                WHEN r.outcome = 'NOT_ATTEMPTED' THEN a.status
                WHEN r.outcome = 'NOT_FOUND'
                THEN CASE WHEN NOT c.is_collected AND f.rounds > a.not_found_rounds THEN 'ABANDONED' ELSE a.status END
                WHEN r.outcome = 'UNKNOWN' AND r.source <> 'SEND' THEN a.status
                ELSE r.outcome
            END AS status
    ) AS n
    CROSS JOIN LATERAL (
        SELECT least(
            coalesce(r.amount, a.amount), CASE WHEN i.status IN ('OPEN', 'FAILED') THEN i.amount_due ELSE 0 END
        ) AS captured
    ) AS m
    CROSS JOIN LATERAL (
        -- What was asked for is believed, however much. Of what comes on top, no more than credit can hold.
        SELECT r.amount > a.amount AND r.amount::numeric - m.captured + coalesce(
            (
                SELECT c.balance
                FROM billing.credit_balance AS c
                WHERE c.customer_id = a.customer_id AND c.currency = a.currency
            ),
            0
        ) > 1000000000000000 AS is_beyond
    ) AS b
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN r.source <> 'WEBHOOK' AND r.claim_epoch IS DISTINCT FROM a.claim_epoch AND r.outcome <> 'SUCCEEDED'
            THEN 'STALE'
            WHEN r.outcome = 'SUCCEEDED' AND (r.currency <> a.currency OR b.is_beyond) THEN 'REJECTED'
            WHEN r.gateway_payment_id <> a.gateway_payment_id OR r.names_payment_of_another THEN 'REJECTED'
            WHEN EXISTS (
                SELECT 1
                FROM billing.payment_attempt AS o
                WHERE o.gateway_account_id = a.gateway_account_id
                  AND o.gateway_payment_id = r.gateway_payment_id
                  AND (o.customer_id, o.attempt_id) <> (a.customer_id, a.attempt_id)
            ) THEN 'REJECTED'
            WHEN a.ended_at IS NOT NULL AND n.status = a.status THEN 'DUPLICATE'
            WHEN a.ended_at IS NOT NULL AND n.status <> 'SUCCEEDED' THEN 'STALE'
            WHEN billing.outcome_rank(n.status) < billing.outcome_rank(a.status) THEN 'STALE'
            ELSE 'APPLIED'
        END AS verdict
    ) AS v;
$function$;

COMMENT ON FUNCTION billing.judge_results IS
'Decides what to make of each result: whether it is believed (epoch, rank, binding), the status of the attempt, where the money goes, when to ask or send again.';
