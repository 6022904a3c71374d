CREATE OR REPLACE FUNCTION billing_worker.start_attempts(
    p_gateway_account text,
    p_limit integer,
    p_worker text,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.charge_request
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $function$
-- Locks:      invoice (SKIP LOCKED) -> subscription (SKIP LOCKED, of those that need no call) -> payment_attempt
--             -> credit_balance
-- Writes:     payment_attempt, invoice; as settle_attempts for what needs no call
-- Raises:     SB101 bad limit or worker, SB104 p_as_of, SB206 unknown account
-- Idempotent: no; what it returns is committed before it is sent, and claimed until its lease lapses
-- The subscription comes after the invoice here, against the order of all others, and therefore never waits.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_account billing.gateway_account := billing.require_gateway_account(p_gateway_account);
    v_claimed billing.invoice_key[];
    v_sendable billing.invoice_key[];
BEGIN
    PERFORM billing.require_limit(p_limit);
    PERFORM billing.require_text(p_worker, 'p_worker', 200);
    IF billing.moves_no_money(v_account) THEN
        RETURN;
    END IF;

    v_claimed := billing.claim_due_invoices(v_account.gateway_account_id, p_limit, v_as_of);
    IF cardinality(v_claimed) = 0 THEN
        RETURN;
    END IF;
    v_sendable := billing.resolve_without_call(v_claimed, v_account, v_as_of);
    RETURN QUERY SELECT q.* FROM billing.send_attempts(v_sendable, v_account, p_worker, v_as_of) AS q;
END;
$function$;

COMMENT ON FUNCTION billing_worker.start_attempts IS
'Claims up to p_limit due invoices of a gateway account, interactive ones first, and returns the requests to send once the transaction has committed. Invoices that need no call (paid by credit, no usable method) are settled on the way and not returned.';
