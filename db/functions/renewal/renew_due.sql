CREATE OR REPLACE FUNCTION billing_worker.renew_due(
    p_limit integer,
    p_as_of timestamptz DEFAULT billing.now(),
    p_shard integer DEFAULT 0,
    p_shards integer DEFAULT 1,
    p_run_id bigint DEFAULT NULL
)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      subscription (SKIP LOCKED) -> invoice of those that end -> credit_balance -> billing_run
-- Writes:     subscription, subscription_period, invoice, invoice_line, credit_entry, credit_balance,
--             subscription_event, outbox_event, billing_run
-- Raises:     SB101 bad limit or shard, SB104 p_as_of, SB208 unknown run
-- Idempotent: yes: what is not due any more is not taken again
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_claimed billing.subscription_key[];
    v_outcome billing.renewal_outcome;
BEGIN
    PERFORM billing.require_limit(p_limit);
    PERFORM billing.require_shard(p_shard, p_shards);
    IF billing.is_stopped('RENEWING') OR NOT billing.may_go_on(p_run_id) THEN
        RETURN 0;
    END IF;

    v_claimed := billing.claim_due_subscriptions(p_limit, v_as_of, p_shard, p_shards, p_run_id);
    IF cardinality(v_claimed) > 0 THEN
        v_outcome := billing.renew_or_divide(v_claimed, v_as_of, p_run_id);
        PERFORM billing.note_batch(p_run_id, v_outcome);
    END IF;
    RETURN cardinality(v_claimed);
END;
$function$;

COMMENT ON FUNCTION billing_worker.renew_due IS
'Renews up to p_limit due subscriptions by one period each, in one transaction, and returns how many it took up: renewed, ended at their boundary or parked. 0 = nothing is due, or renewing is stopped.';
