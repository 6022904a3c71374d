-- What an internal system may call: everything in billing_api, and nothing else. Granted anew on every run, so that this
-- file is the whole truth.
REVOKE ALL ON ALL TABLES IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_app;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_app;
GRANT USAGE ON SCHEMA billing_api TO billing_app;

-- A default, and the condition of a view, run with the caller's rights.
GRANT EXECUTE ON FUNCTION
billing.now,
billing.in_customer_scope
TO billing_app;

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
billing_api.credit_balance
TO billing_app;

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
TO billing_app;
