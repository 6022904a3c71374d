CREATE OR REPLACE FUNCTION billing_worker.attempts_to_look_up(
    p_gateway_account text,
    p_limit integer,
    p_as_of timestamptz DEFAULT billing.now(),
    p_worker text DEFAULT 'unnamed'
)
RETURNS SETOF billing.charge_request
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = ''
SET timezone = 'UTC'
AS $function$
-- Locks:      payment_attempt (SKIP LOCKED)
-- Writes:     payment_attempt
-- Raises:     SB101 bad limit or worker, SB104 p_as_of, SB206 unknown account
-- Idempotent: no; a claim holds until its lease lapses
-- The next look-up is set with the claim, so that a worker that dies asks nothing of anybody. Looked up whatever the
-- status of the invoice: a voided one may have been charged.
DECLARE
    v_as_of timestamptz := billing.require_as_of(p_as_of);
    v_account billing.gateway_account := billing.require_gateway_account(p_gateway_account);
BEGIN
    PERFORM billing.require_limit(p_limit);
    PERFORM billing.require_text(p_worker, 'p_worker', 200);
    IF billing.is_off(v_account) THEN
        RETURN;
    END IF;
    PERFORM billing.doubt_lapsed_attempts(p_limit, v_as_of);

    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT a.customer_id, a.attempt_id
        FROM billing.payment_attempt AS a
        WHERE a.gateway_account_id = v_account.gateway_account_id
          AND a.next_lookup_at <= v_as_of
          AND (a.lease_until IS NULL OR a.lease_until <= clock_timestamp())
        ORDER BY a.next_lookup_at
        LIMIT p_limit
        FOR NO KEY UPDATE SKIP LOCKED
    ),

    claimed AS (
        UPDATE billing.payment_attempt AS a
        SET claim_epoch = a.claim_epoch + 1,
            claimed_by = p_worker,
            lease_until = clock_timestamp() + v_account.request_timeout + v_account.lease_margin,
            lookup_count = a.lookup_count + 1,
            next_lookup_at = v_as_of + billing.lookup_delay(a.lookup_count + 1)
        FROM due AS d
        WHERE a.customer_id = d.customer_id AND a.attempt_id = d.attempt_id
        RETURNING a.*
    )

    SELECT
        c.customer_id, c.attempt_id, c.claim_epoch, c.idempotency_key, c.amount, c.currency, c.payment_method_token,
        c.description, i.lane, v_account.code, c.gateway_payment_id, c.send_count, c.gateway_intent_id,
        billing.payment_before(c), c.status = 'REQUIRES_ACTION'
    FROM claimed AS c
    INNER JOIN billing.invoice AS i ON i.customer_id = c.customer_id AND i.invoice_id = c.invoice_id
    ORDER BY c.customer_id, c.attempt_id;
END;
$function$;

COMMENT ON FUNCTION billing_worker.attempts_to_look_up IS
'Claims attempts whose outcome is to be asked of the gateway: unknown ones, expired actions, bank money past its deadline. Ask by gateway_payment_id where there is one, else by idempotency_key as our reference.';
