-- What dashboards and DBAs may read: everything but personal data, gateway tokens, and what gateways sent. Granted anew
-- on every run, so that this file is the whole truth. A new table or column is unseen until it is added here.
REVOKE ALL ON ALL TABLES IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_readonly;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_readonly;
GRANT USAGE ON SCHEMA billing, billing_api, billing_ops TO billing_readonly;

-- The condition of a view runs with the caller's rights.
GRANT EXECUTE ON FUNCTION
billing.now,
billing.in_customer_scope
TO billing_readonly;

GRANT SELECT ON
billing_api.customer,
billing_api.resource,
billing_api.payment_method,
billing_api.plan,
billing_api.price,
billing_api.subscription,
billing_api.invoice,
billing_api.invoice_line,
billing_api.payment_attempt,
billing_api.refund,
billing_api.credit_balance,
billing_ops.renewal_backlog,
billing_ops.renewal_progress,
billing_ops.collection_backlog,
billing_ops.dunning_board,
billing_ops.outbox_lag,
billing_ops.blocked_event,
billing_ops.stuck_attempts,
billing_ops.parked,
billing_ops.open_cases,
billing_ops.api_key
TO billing_readonly;

GRANT SELECT ON
billing.error_code,
billing.database_identity,
billing.test_clock,
billing.currency,
billing.time_zone,
billing.customer,
billing.resource,
billing.gateway_account,
billing.gateway_rate,
billing.gateway_minimum,
billing.decline_code,
billing.plan,
billing.price,
billing.dunning_policy,
billing.subscription_transition,
billing.subscription,
billing.subscription_period,
billing.trial_taken,
billing.subscription_event,
billing.invoice,
billing.invoice_line,
billing.credit_balance,
billing.credit_entry,
billing.payment_report,
billing.refund,
billing.refund_report,
billing.settlement_report,
billing.settlement_line,
billing.reconciliation_case,
billing.outbox_event,
billing.outbox_lease,
billing.outbox_relay,
billing.idempotency_key,
billing.billing_run,
billing.operator_switch,
billing.subscription_change,
billing.pending_line,
billing.attempt_cap
TO billing_readonly;

GRANT SELECT (
    customer_id, payment_method_id, gateway_account_id, brand, last4, exp_month, exp_year, is_default, blocked_at,
    blocked_code, removed_at, created_at
) ON billing.payment_method TO billing_readonly;

GRANT SELECT (
    customer_id, attempt_id, invoice_id, attempt_no, status, amount, currency, idempotency_key, gateway_account_id,
    payment_method_id, description, gateway_payment_id, decline_code, decline_class, action_expires_at, claim_epoch,
    claimed_by, lease_until, send_count, refusal_count, last_sent_at, lookup_count, not_found_count, not_found_rounds,
    next_lookup_at, started_at, ended_at
) ON billing.payment_attempt TO billing_readonly;

GRANT SELECT (
    webhook_event_id, gateway_account_id, event_id, event_type, status, customer_id, attempt_id, failure_count,
    last_error, next_try_at, received_at, received_wall_at, processed_at
) ON billing.webhook_event TO billing_readonly;

GRANT EXECUTE ON FUNCTION
billing_ops.subscription_timeline,
billing_ops.explain_invoice,
billing_ops.check_integrity
TO billing_readonly;

GRANT SELECT (
    api_key_id, name, scopes, customer_id, replaces_api_key_id, created_at, created_by, rotated_at, expires_at,
    revoked_at, revoked_by
) ON billing.api_key TO billing_readonly;
