CREATE OR REPLACE FUNCTION billing_worker.refunds_to_look_up(
    p_gateway_account text,
    p_limit integer,
    p_as_of timestamptz DEFAULT billing.now(),
    p_worker text DEFAULT 'unnamed'
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
-- Idempotent: no; a claim holds until its lease lapses
-- The next look-up is set with the claim, so that a worker that dies asks nothing of anybody.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_account billing.gateway_account := billing.require_gateway_account(p_gateway_account);
BEGIN
    PERFORM billing.require_limit(p_limit);
    PERFORM billing.require_text(p_worker, 'p_worker', 200);
    IF billing.is_off(v_account) THEN
        RETURN;
    END IF;
    PERFORM billing.doubt_lapsed_refunds(p_limit, v_as_of);

    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT f.customer_id, f.refund_id
        FROM billing.refund AS f
        WHERE f.gateway_account_id = v_account.gateway_account_id
          AND f.next_lookup_at <= v_as_of
          AND (f.lease_until IS NULL OR f.lease_until <= clock_timestamp())
        ORDER BY f.next_lookup_at
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    ),

    claimed AS (
        UPDATE billing.refund AS f
        SET claim_epoch = f.claim_epoch + 1,
            claimed_by = p_worker,
            lease_until = clock_timestamp() + v_account.request_timeout + v_account.lease_margin,
            lookup_count = f.lookup_count + 1,
            next_lookup_at = v_as_of + billing.lookup_delay(f.lookup_count + 1)
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

COMMENT ON FUNCTION billing_worker.refunds_to_look_up IS
'Claims refunds whose outcome is to be asked of the gateway, by gateway_refund_id where there is one, else by idempotency_key as our reference.';
