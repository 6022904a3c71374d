CREATE OR REPLACE FUNCTION billing_worker.settle_refunds(
    p_results billing.refund_result[],
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.refund_settlement
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      subscription -> invoice -> refund -> customer (its event counter), each in key order
-- Writes:     refund, refund_report, invoice, reconciliation_case, subscription, customer, subscription_event, outbox_event
-- Raises:     SB101 malformed result, SB104 p_as_of
-- Idempotent: yes: a repeated result is DUPLICATE or STALE
-- What does not fit is reported, not raised, so that one odd result never holds up a batch.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_judgements billing.refund_judgement[];
BEGIN
    PERFORM billing.require_refund_results(p_results);
    PERFORM billing.lock_for_refunds(p_results);
    v_judgements := billing.judge_refunds(p_results, v_as_of);
    PERFORM billing.update_refunds(v_judgements, v_as_of);
    -- What was rejected lies before a person, and would be rejected again.
    PERFORM billing.ask_where_contradicted(
        ARRAY(
            SELECT r
            FROM unnest(p_results) AS r
            WHERE NOT EXISTS (
                SELECT 1
                FROM unnest(v_judgements) AS j
                WHERE j.customer_id = r.customer_id AND j.refund_id = r.refund_id AND j.verdict = 'REJECTED'
            )
        ),
        v_as_of
    );
    PERFORM billing.store_refund_reports(v_judgements, v_as_of);
    PERFORM billing.record_refunds(v_judgements, v_as_of);

    RETURN QUERY
    SELECT
        r.customer_id, r.refund_id, r.outcome,
        coalesce(j.verdict, CASE WHEN f.refund_id IS NULL THEN 'REJECTED' ELSE 'STALE' END), f.status
    FROM unnest(p_results) AS r
    LEFT JOIN unnest(v_judgements) AS j
        ON j.customer_id = r.customer_id AND j.refund_id = r.refund_id AND j.outcome = r.outcome
    LEFT JOIN billing.refund AS f ON f.customer_id = r.customer_id AND f.refund_id = r.refund_id;
END;
$function$;

COMMENT ON FUNCTION billing_worker.settle_refunds IS
'Records what gateways said about refunds, in one transaction. Returns what became of each result; an unknown refund is REJECTED, the weaker of two reports STALE.';
