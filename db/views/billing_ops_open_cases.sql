CREATE OR REPLACE VIEW billing_ops.open_cases AS
SELECT
    c.case_id,
    c.kind,
    c.opened_at,
    (SELECT billing.now()) - c.opened_at AS age,
    c.customer_id,
    c.invoice_id,
    c.attempt_id,
    c.webhook_event_id,
    c.amount,
    c.currency,
    c.detail,
    c.refund_id
FROM billing.reconciliation_case AS c
WHERE c.resolved_at IS NULL;

COMMENT ON VIEW billing_ops.open_cases IS
'What needs a person: money that was not expected, an outcome that stays unknown, a dispute.';
COMMENT ON COLUMN billing_ops.open_cases.case_id IS 'Case.';
COMMENT ON COLUMN billing_ops.open_cases.kind IS
'UNKNOWN_OUTCOME, AMOUNT_MISMATCH, CURRENCY_MISMATCH, BINDING_MISMATCH, LATE_PAYMENT, UNMATCHED_WEBHOOK, AMBIGUOUS_WEBHOOK, BANK_REVERSAL, DISPUTE; REFUND_FAILED, REFUND_MISMATCH, REFUND_UNKNOWN; MISSING_AT_GATEWAY, MISSING_HERE or SETTLEMENT_MISMATCH.';
COMMENT ON COLUMN billing_ops.open_cases.opened_at IS 'Business time of opening.';
COMMENT ON COLUMN billing_ops.open_cases.age IS 'Business time since then.';
COMMENT ON COLUMN billing_ops.open_cases.customer_id IS 'Customer, if known.';
COMMENT ON COLUMN billing_ops.open_cases.invoice_id IS 'Invoice, if known.';
COMMENT ON COLUMN billing_ops.open_cases.attempt_id IS 'Attempt, if known.';
COMMENT ON COLUMN billing_ops.open_cases.webhook_event_id IS 'Webhook event, if one caused it.';
COMMENT ON COLUMN billing_ops.open_cases.amount IS 'Amount in question, in minor units.';
COMMENT ON COLUMN billing_ops.open_cases.currency IS 'Currency in question.';
COMMENT ON COLUMN billing_ops.open_cases.detail IS 'What was expected and what was found.';
COMMENT ON COLUMN billing_ops.open_cases.refund_id IS 'Refund, if known.';
