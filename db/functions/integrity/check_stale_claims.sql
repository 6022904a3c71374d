CREATE OR REPLACE FUNCTION billing.check_stale_claims(
    p_customers bigint[] DEFAULT NULL
)
RETURNS SETOF billing.violation
LANGUAGE plpgsql
STABLE
SET search_path = ''
SET timezone = 'UTC'
SET plan_cache_mode = force_custom_plan
AS $function$
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
-- A success counts whoever reports it; a webhook answers no claim.
BEGIN
    RETURN QUERY
    SELECT
        'stale_claims', 'BROKEN', r.customer_id, format('attempt %s', r.attempt_id),
        format('%s under claim %s was believed after claim %s had answered', r.outcome, r.claim_epoch, r.latest)
    FROM (
        SELECT
            p.customer_id, p.attempt_id, p.outcome, p.verdict, p.claim_epoch,
            max(p.claim_epoch) OVER (
                PARTITION BY p.customer_id, p.attempt_id ORDER BY p.payment_report_id
            ) AS latest
        FROM billing.payment_report AS p
        WHERE p.claim_epoch IS NOT NULL AND (p_customers IS NULL OR p.customer_id = ANY (p_customers))
    ) AS r
    WHERE r.claim_epoch < r.latest AND r.verdict = 'APPLIED' AND r.outcome <> 'SUCCEEDED';
END;
$function$;

COMMENT ON FUNCTION billing.check_stale_claims IS
'A worker that was taken for dead was believed after another had asked anew: its old word may have overruled a newer one.';
