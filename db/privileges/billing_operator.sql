-- What a person on call may do: the runbook in billing_ops, and what an internal system may, with less regard to p_as_of
-- and to grant first. Granted anew on every run, so that this file is the whole truth.
REVOKE ALL ON ALL TABLES IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_operator;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_operator;
GRANT USAGE ON SCHEMA billing, billing_api, billing_ops TO billing_operator;

-- A default, and the condition of a view, run with the caller's rights.
GRANT EXECUTE ON FUNCTION
billing.now,
billing.in_customer_scope
TO billing_operator;

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
TO billing_operator;

GRANT EXECUTE ON FUNCTION
billing_api.create_customer,
billing_api.erase_customer,
billing_api.add_payment_method,
billing_api.set_default_payment_method,
billing_api.remove_payment_method,
billing_api.create_plan,
billing_api.add_price,
billing_api.migrate_price,
billing_api.create_subscription,
billing_api.set_subscription_payment_method,
billing_api.cancel_subscription,
billing_api.undo_cancel,
billing_api.change_plan,
billing_api.preview_change_plan,
billing_api.undo_change,
billing_api.pause_subscription,
billing_api.resume_subscription,
billing_api.extend_trial,
billing_api.renew_now,
billing_api.import_subscription,
billing_api.has_access,
billing_api.grant_credit,
billing_api.retry_invoice,
billing_api.void_invoice,
billing_api.refund_invoice,
billing_api.create_manual_invoice,
billing_api.suspend_resource,
billing_api.lift_suspension
TO billing_operator;

GRANT EXECUTE ON FUNCTION
billing_ops.create_gateway_account,
billing_ops.set_gateway_rate,
billing_ops.set_gateway_minimum,
billing_ops.create_dunning_policy,
billing_ops.mark_test_database,
billing_ops.set_shard,
billing_ops.set_clock,
billing_ops.pause_collecting,
billing_ops.resume_collecting,
billing_ops.pause_renewing,
billing_ops.resume_renewing,
billing_ops.unpark,
billing_ops.resolve_case,
billing_ops.adopt_database,
billing_ops.open_settlement_report,
billing_ops.add_settlement_lines,
billing_ops.compare_settlement,
billing_ops.subscription_timeline,
billing_ops.explain_invoice,
billing_ops.check_integrity,
billing_ops.replay_event,
billing_ops.create_api_key,
billing_ops.rotate_api_key,
billing_ops.revoke_api_key
TO billing_operator;
