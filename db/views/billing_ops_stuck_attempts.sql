CREATE OR REPLACE VIEW billing_ops.stuck_attempts AS
SELECT
    t.customer_id,
    t.attempt_id,
    t.invoice_id,
    t.status,
    CASE
        WHEN t.status = 'STARTED' THEN 'lease_lapsed'
        WHEN t.status = 'UNKNOWN' THEN 'outcome_unknown'
        WHEN t.status = 'PROCESSING' THEN 'past_processing_deadline'
        ELSE 'action_expired'
    END AS reason,
    t.amount,
    t.currency,
    a.code AS gateway_account,
    t.idempotency_key,
    t.gateway_payment_id,
    t.claimed_by,
    t.lease_until,
    t.send_count,
    t.lookup_count,
    t.next_lookup_at,
    t.started_at,
    (SELECT billing.now()) - t.started_at AS age
FROM billing.payment_attempt AS t
INNER JOIN billing.gateway_account AS a ON t.gateway_account_id = a.gateway_account_id
WHERE
    t.status IN ('STARTED', 'UNKNOWN', 'REQUIRES_ACTION', 'PROCESSING')
    AND CASE t.status
        WHEN 'STARTED' THEN t.lease_until < clock_timestamp()
        WHEN 'UNKNOWN' THEN coalesce(t.last_sent_at, t.started_at) <= (SELECT billing.now()) - interval '1 hour'
        WHEN 'PROCESSING' THEN t.started_at + a.processing_deadline <= (SELECT billing.now())
        ELSE t.action_expires_at <= (SELECT billing.now())
    END;

COMMENT ON VIEW billing_ops.stuck_attempts IS
'Attempts that should have an answer by now: a lease that lapsed, an outcome unknown for over an hour, bank money past its deadline, an action that expired. Empty is healthy.';
COMMENT ON COLUMN billing_ops.stuck_attempts.customer_id IS 'Customer.';
COMMENT ON COLUMN billing_ops.stuck_attempts.attempt_id IS 'Payment attempt.';
COMMENT ON COLUMN billing_ops.stuck_attempts.invoice_id IS 'Invoice to collect.';
COMMENT ON COLUMN billing_ops.stuck_attempts.status IS 'STARTED, UNKNOWN, REQUIRES_ACTION or PROCESSING.';
COMMENT ON COLUMN billing_ops.stuck_attempts.reason IS
'lease_lapsed, outcome_unknown, past_processing_deadline or action_expired.';
COMMENT ON COLUMN billing_ops.stuck_attempts.amount IS 'Amount sent, in minor units.';
COMMENT ON COLUMN billing_ops.stuck_attempts.currency IS 'Currency sent, ISO 4217.';
COMMENT ON COLUMN billing_ops.stuck_attempts.gateway_account IS 'Code of the gateway account.';
COMMENT ON COLUMN billing_ops.stuck_attempts.idempotency_key IS 'Key and reference at the gateway: search for it there.';
COMMENT ON COLUMN billing_ops.stuck_attempts.gateway_payment_id IS 'Payment at the gateway, once known.';
COMMENT ON COLUMN billing_ops.stuck_attempts.claimed_by IS 'Worker of the last claim.';
COMMENT ON COLUMN billing_ops.stuck_attempts.lease_until IS 'Wall clock until which that claim held.';
COMMENT ON COLUMN billing_ops.stuck_attempts.send_count IS 'Claims for a send.';
COMMENT ON COLUMN billing_ops.stuck_attempts.lookup_count IS 'Claims for a look-up since the last send.';
COMMENT ON COLUMN billing_ops.stuck_attempts.next_lookup_at IS 'Business time of the next look-up; NULL = none.';
COMMENT ON COLUMN billing_ops.stuck_attempts.started_at IS 'Business time of the first commit.';
COMMENT ON COLUMN billing_ops.stuck_attempts.age IS 'Business time since then.';
