CREATE OR REPLACE FUNCTION billing_worker.settle_attempts(
    p_results billing.charge_result[],
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.settlement
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $function$
-- Locks:      subscription -> invoice -> payment_attempt -> payment_method -> credit_balance, each in key order
-- Writes:     payment_attempt, payment_report, invoice, payment_method, credit_entry, credit_balance,
--             reconciliation_case, subscription, subscription_period, subscription_event, outbox_event, resource
-- Raises:     SB101 malformed result, SB104 p_as_of
-- Idempotent: yes: a repeated result is DUPLICATE or STALE
-- What does not fit is reported, not raised, so that one odd result never holds up a batch. An invoice that stands in
-- the batch more than once is settled in as many rounds, the strongest result first.
-- Joins are pinned to nested loops: with young statistics the planner would read whole tables for each batch.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_results billing.charge_result[];
    v_round billing.charge_result[];
    v_round_no integer := 0;
BEGIN
    PERFORM billing.require_results(p_results);
    IF cardinality(p_results) = 0 THEN
        RETURN;
    END IF;
    v_results := billing.clean_results(p_results);
    PERFORM billing.lock_for_settlement(v_results);
    -- Nothing ends before it was sent.
    v_as_of := greatest(v_as_of, billing.last_send_of(v_results));

    LOOP
        v_round_no := v_round_no + 1;
        v_round := billing.results_of_round(v_results, v_round_no);
        EXIT WHEN cardinality(v_round) = 0;
        RETURN QUERY SELECT s.* FROM billing.settle_round(v_round, v_as_of) AS s;
    END LOOP;

    RETURN QUERY
    SELECT r.customer_id, r.attempt_id, r.outcome, 'REJECTED', NULL::text, NULL::bigint, NULL::text, NULL::text
    FROM unnest(p_results) AS r
    WHERE NOT EXISTS (
        SELECT 1
        FROM billing.payment_attempt AS a
        WHERE a.customer_id = r.customer_id AND a.attempt_id = r.attempt_id
    );
END;
$function$;

COMMENT ON FUNCTION billing_worker.settle_attempts IS
'Records what gateways said about attempts, and all that follows for invoices, subscriptions, credit and events, in one transaction. Returns what became of each result; an unknown attempt is REJECTED.';
