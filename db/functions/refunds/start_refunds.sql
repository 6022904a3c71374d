CREATE OR REPLACE FUNCTION billing_worker.start_refunds(
    p_gateway_account text,
    p_limit integer,
    p_worker text,
    p_as_of timestamptz DEFAULT billing.now()
)
RETURNS SETOF billing.refund_request
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      refund (SKIP LOCKED)
-- Writes:     refund
-- Raises:     SB101 bad limit or worker, SB104 p_as_of, SB206 unknown account
-- Idempotent: no; what it returns is committed before it is sent, and claimed until its lease lapses
-- The life of a key counts from the first send that may have been executed. A lapsed one is only looked up.
-- Where a look-up falls due together with a send, the look-up goes first.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_account billing.gateway_account := billing.require_gateway_account(p_gateway_account);
BEGIN
    PERFORM billing.require_limit(p_limit);
    PERFORM billing.require_text(p_worker, 'p_worker', 200);
    IF billing.moves_no_money(v_account) THEN
        RETURN;
    END IF;

    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT f.customer_id, f.refund_id, f.refusal_count >= f.send_count AS is_unsent
        FROM billing.refund AS f
        WHERE f.gateway_account_id = v_account.gateway_account_id
          AND f.next_send_at <= v_as_of
          AND (f.held_until IS NULL OR f.held_until <= clock_timestamp())
          AND (f.lease_until IS NULL OR f.lease_until <= clock_timestamp())
          AND (f.status <> 'UNKNOWN' OR f.next_lookup_at IS NULL OR f.next_lookup_at > v_as_of)
          AND (
              f.refusal_count >= f.send_count
              OR v_as_of < f.first_sent_at + v_account.key_lifetime * 0.9
          )
        ORDER BY f.next_send_at
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    ),

    claimed AS (
        UPDATE billing.refund AS f
        SET status = CASE f.status WHEN 'REQUESTED' THEN 'STARTED' ELSE f.status END,
            claim_epoch = f.claim_epoch + 1,
            claimed_by = p_worker,
            lease_until = clock_timestamp() + v_account.request_timeout + v_account.lease_margin,
            send_count = f.send_count + 1,
            lookup_count = 0,
            first_sent_at = CASE WHEN d.is_unsent THEN v_as_of ELSE f.first_sent_at END,
            last_sent_at = v_as_of,
            next_send_at = NULL,
            held_until = NULL
        FROM due AS d
        WHERE f.customer_id = d.customer_id AND f.refund_id = d.refund_id
        RETURNING f.*
    )

    SELECT
        c.customer_id, c.refund_id, c.claim_epoch, c.idempotency_key, c.gateway_payment_id, c.amount, c.currency,
        v_account.code, c.gateway_refund_id, c.send_count
    FROM claimed AS c
    ORDER BY c.customer_id, c.refund_id;
END;
$function$;

COMMENT ON FUNCTION billing_worker.start_refunds IS
'Claims up to p_limit refunds of a gateway account, oldest first, and returns the requests to send once the transaction has committed.';
