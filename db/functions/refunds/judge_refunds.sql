CREATE OR REPLACE FUNCTION billing.judge_refunds(
    p_results billing.refund_result[],
    p_as_of timestamptz
)
RETURNS billing.refund_judgement[]
LANGUAGE sql
STABLE
SET search_path = ''
SET timezone = 'UTC'
AS $function$
    -- Locks:      nothing; everything is locked by the step before
    -- Writes:     nothing
    -- Raises:     nothing
    -- Idempotent: yes
    -- The only step that decides what is to be believed about refunds; as judge_results does about charges. Unlike a charge,
    -- a refund may fail after it succeeded, and reports of both may come in any order: what speaks against its end is STALE,
    -- and only a look-up made since then is believed.
    SELECT coalesce(
        array_agg(
            ROW(
                f.customer_id, f.refund_id, f.invoice_id, r.source, r.claim_epoch, r.outcome, v.verdict,
                CASE WHEN v.verdict = 'APPLIED' THEN n.status ELSE f.status END,
                r.gateway_refund_id, r.amount, r.currency, r.code,
                CASE WHEN r.outcome = 'NOT_ATTEMPTED'
                     THEN greatest(coalesce(r.retry_after, 0), least(60, 2 ^ least(f.refusal_count, 6)))
                END,
                CASE WHEN n.status IN ('REQUESTED', 'UNKNOWN') THEN t.send_at END,
                CASE
                    WHEN n.status IN ('SUCCEEDED', 'FAILED', 'REQUESTED') THEN NULL
                    WHEN n.status = 'PROCESSING' THEN p_as_of + interval '1 day'
                    WHEN r.outcome = 'UNKNOWN' AND r.source = 'SEND'
                    THEN p_as_of + billing.lookup_delay(f.lookup_count)
                    ELSE coalesce(f.next_lookup_at, p_as_of)
                END,
                CASE WHEN r.outcome = 'NOT_FOUND' THEN c.not_founds ELSE 0 END,
                c.rounds,
                CASE
                    WHEN v.verdict = 'REJECTED' THEN 'REFUND_MISMATCH'
                    WHEN v.verdict = 'APPLIED' AND n.status = 'FAILED' THEN 'REFUND_FAILED'
                    WHEN v.verdict = 'APPLIED' AND r.outcome = 'NOT_FOUND' AND c.rounds > f.not_found_rounds
                        AND t.send_at IS NULL
                    THEN 'REFUND_UNKNOWN'
                END
            )::billing.refund_judgement
            ORDER BY f.customer_id, f.refund_id
        ),
        '{}'
    )
    FROM (
        -- One report per refund, the strongest; and one refund at the gateway cannot be two of ours.
        SELECT DISTINCT ON (u.customer_id, u.refund_id) u.*
        FROM unnest(p_results) AS u
        ORDER BY
            u.customer_id, u.refund_id,
            array_position(ARRAY['SUCCEEDED', 'DECLINED', 'PROCESSING', 'UNKNOWN'], u.outcome)
    ) AS r
    INNER JOIN billing.refund AS f ON f.customer_id = r.customer_id AND f.refund_id = r.refund_id
    INNER JOIN billing.gateway_account AS g ON g.gateway_account_id = f.gateway_account_id
    CROSS JOIN LATERAL (
        SELECT r.outcome = 'NOT_FOUND' AND p_as_of >= coalesce(f.last_sent_at, f.requested_at) + g.settle_window AS counts
    ) AS w
    CROSS JOIN LATERAL (
        SELECT
            CASE WHEN w.counts AND f.not_found_count >= 1 THEN 0
                 ELSE f.not_found_count + w.counts::integer
            END AS not_founds,
            f.not_found_rounds + (w.counts AND f.not_found_count >= 1)::integer AS rounds
    ) AS c
    CROSS JOIN LATERAL (
        SELECT CASE r.outcome
            WHEN 'SUCCEEDED' THEN 'SUCCEEDED'
            WHEN 'DECLINED' THEN 'FAILED'
            WHEN 'PROCESSING' THEN 'PROCESSING'
            WHEN 'NOT_ATTEMPTED'
            THEN CASE
                WHEN f.status <> 'STARTED' THEN f.status
                WHEN f.refusal_count + 1 < f.send_count THEN 'UNKNOWN'
                ELSE 'REQUESTED'
            END
            WHEN 'UNKNOWN' THEN CASE WHEN r.source = 'SEND' THEN 'UNKNOWN' ELSE f.status END
            ELSE f.status
        END AS status
    ) AS n
    CROSS JOIN LATERAL (
        SELECT
            CASE WHEN n.status = 'REQUESTED' OR x.at < f.first_sent_at + g.key_lifetime * 0.9 THEN x.at END AS send_at
        FROM (
            SELECT CASE r.outcome
                WHEN 'NOT_ATTEMPTED' THEN p_as_of
                WHEN 'UNKNOWN'
                THEN CASE r.source WHEN 'SEND' THEN f.last_sent_at + interval '15 minutes' ELSE f.next_send_at END
                WHEN 'NOT_FOUND'
                THEN CASE
                    WHEN c.rounds > f.not_found_rounds THEN CASE WHEN c.rounds < 3 THEN p_as_of END
                    ELSE f.next_send_at
                END
            END AS at
        ) AS x
    ) AS t
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN r.source <> 'WEBHOOK' AND r.claim_epoch IS DISTINCT FROM f.claim_epoch AND r.outcome <> 'SUCCEEDED'
            THEN 'STALE'
            WHEN r.outcome IN ('SUCCEEDED', 'PROCESSING') AND (r.currency <> f.currency OR r.amount <> f.amount)
            THEN 'REJECTED'
            WHEN r.gateway_refund_id <> f.gateway_refund_id OR EXISTS (
                SELECT 1
                FROM billing.refund AS o
                WHERE o.gateway_account_id = f.gateway_account_id
                  AND o.gateway_refund_id = r.gateway_refund_id
                  AND (o.customer_id, o.refund_id) <> (f.customer_id, f.refund_id)
            ) OR EXISTS (
                SELECT 1
                FROM unnest(p_results) AS u
                WHERE u.gateway_refund_id = r.gateway_refund_id
                  AND (u.customer_id, u.refund_id) < (f.customer_id, f.refund_id)
            ) THEN 'REJECTED'
            WHEN f.ended_at IS NOT NULL AND n.status = f.status THEN 'DUPLICATE'
            WHEN f.ended_at IS NOT NULL AND (
                n.status IN ('SUCCEEDED', 'FAILED') AND r.source = 'LOOKUP' AND r.claim_epoch = f.claim_epoch
            ) IS NOT TRUE THEN 'STALE'
            -- It was asked for anew meanwhile: more would have gone back than was paid, which only a person can sort out.
            WHEN f.status = 'FAILED' AND n.status = 'SUCCEEDED' AND f.purpose <> 'LATE_PAYMENT' AND f.amount > (
                SELECT billing.refundable_of_attempt(a)
                FROM billing.payment_attempt AS a
                WHERE a.customer_id = f.customer_id AND a.attempt_id = f.attempt_id
            ) - (
                SELECT coalesce(sum(o.amount), 0)
                FROM unnest(p_results) AS u
                INNER JOIN billing.refund AS o ON o.customer_id = u.customer_id AND o.refund_id = u.refund_id
                WHERE u.outcome = 'SUCCEEDED' AND o.status = 'FAILED'
                  AND o.customer_id = f.customer_id AND o.attempt_id = f.attempt_id AND o.refund_id < f.refund_id
            ) THEN 'REJECTED'
            WHEN r.outcome IN ('UNKNOWN', 'PROCESSING') AND r.source <> 'LOOKUP'
                AND array_position(ARRAY['REQUESTED', 'STARTED', 'UNKNOWN', 'PROCESSING'], n.status)
                < array_position(ARRAY['REQUESTED', 'STARTED', 'UNKNOWN', 'PROCESSING'], f.status)
            THEN 'STALE'
            ELSE 'APPLIED'
        END AS verdict
    ) AS v;
$function$;

COMMENT ON FUNCTION billing.judge_refunds IS
'Decides what is to be believed of each report about a refund, and what follows.';
