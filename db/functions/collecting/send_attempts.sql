CREATE OR REPLACE FUNCTION billing.send_attempts(
    p_invoices billing.invoice_key[],
    p_account billing.gateway_account,
    p_worker text,
    p_as_of timestamptz
)
RETURNS SETOF billing.charge_request
LANGUAGE plpgsql
SET search_path = ''
AS $function$
-- Locks:      payment_attempt; invoices are locked by the caller
-- Writes:     payment_attempt, invoice
-- Raises:     nothing of its own
-- Idempotent: no
-- An open attempt is claimed again under a new epoch, with what was stored; else a new try is made. One that was to be
-- looked up first was found nowhere, and nor can a later one be. Each send has a schedule of look-ups of its own.
DECLARE
    v_lease_until timestamptz := clock_timestamp() + p_account.request_timeout + p_account.lease_margin;
BEGIN
    INSERT INTO billing.payment_attempt (
        customer_id, invoice_id, attempt_no, amount, currency, idempotency_key, gateway_account_id, payment_method_id,
        payment_method_token, description, gateway_intent_id, claim_epoch, started_at
    )
    SELECT
        i.customer_id, i.invoice_id, i.attempt_count + 1, i.amount_due, i.currency,
        billing.gateway_key(i.invoice_id, i.attempt_count + 1), m.gateway_account_id, m.payment_method_id, m.token,
        billing.charge_text(i), billing.intent_for_retry(i, m.gateway_account_id), 0, p_as_of
    FROM unnest(p_invoices) AS k
    INNER JOIN billing.invoice AS i ON i.customer_id = k.customer_id AND i.invoice_id = k.invoice_id
    LEFT JOIN billing.subscription AS s ON s.customer_id = i.customer_id AND s.subscription_id = i.subscription_id
    CROSS JOIN LATERAL billing.usable_method(
        i.customer_id, coalesce(i.payment_method_id, s.payment_method_id)
    ) AS m
    WHERE m.gateway_account_id = p_account.gateway_account_id
      AND NOT EXISTS (
          SELECT 1
          FROM billing.payment_attempt AS a
          WHERE a.customer_id = i.customer_id AND a.invoice_id = i.invoice_id
            AND a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
      )
    ORDER BY i.customer_id, i.invoice_id;

    UPDATE billing.invoice AS i
    SET next_attempt_at = NULL,
        held_until = NULL,
        attempt_count = a.attempt_no,
        look_up_first = false
    FROM unnest(p_invoices) AS k
    INNER JOIN billing.payment_attempt AS a
        ON a.customer_id = k.customer_id AND a.invoice_id = k.invoice_id
        AND a.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
    WHERE i.customer_id = k.customer_id AND i.invoice_id = k.invoice_id;

    RETURN QUERY
    WITH claimed AS (
        UPDATE billing.payment_attempt AS a
        SET claim_epoch = a.claim_epoch + 1,
            claimed_by = p_worker,
            lease_until = v_lease_until,
            send_count = a.send_count + 1,
            lookup_count = 0,
            last_sent_at = p_as_of
        FROM unnest(p_invoices) AS k
        WHERE a.customer_id = k.customer_id
          AND a.invoice_id = k.invoice_id
          AND a.status IN ('STARTED', 'UNKNOWN')
          AND (a.lease_until IS NULL OR a.lease_until <= clock_timestamp())
        RETURNING a.*
    )
    SELECT
        c.customer_id, c.attempt_id, c.claim_epoch, c.idempotency_key, c.amount, c.currency, c.payment_method_token,
        c.description, i.lane, p_account.code, c.gateway_payment_id, c.send_count, c.gateway_intent_id,
        billing.payment_before(c), c.status = 'REQUIRES_ACTION'
    FROM claimed AS c
    INNER JOIN billing.invoice AS i ON i.customer_id = c.customer_id AND i.invoice_id = c.invoice_id
    ORDER BY i.lane DESC, c.customer_id, c.attempt_id;
END;
$function$;

COMMENT ON FUNCTION billing.send_attempts IS
'Makes or re-claims the attempt of each invoice under a lease, and returns what is to be sent, interactive ones first.';
