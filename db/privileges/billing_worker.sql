-- What a worker may call: the steps in billing_worker that renew, collect, settle and clean up. Granted anew on every
-- run, so that this file is the whole truth. What drives the queue stands in db/queue/privileges.sql.
REVOKE ALL ON ALL TABLES IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_worker;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_worker;
-- Schema billing for its composite types, in which results are handed over.
GRANT USAGE ON SCHEMA billing, billing_worker TO billing_worker;

-- A default runs with the caller's rights.
GRANT EXECUTE ON FUNCTION billing.now TO billing_worker;

GRANT EXECUTE ON FUNCTION
billing_worker.gateway_accounts,
billing_worker.start_renewal_run,
billing_worker.renew_due,
billing_worker.finish_renewal_run,
billing_worker.count_due_invoices,
billing_worker.start_attempts,
billing_worker.settle_attempts,
billing_worker.keep_intents,
billing_worker.attempts_to_look_up,
billing_worker.count_due_refunds,
billing_worker.start_refunds,
billing_worker.settle_refunds,
billing_worker.refunds_to_look_up,
billing_worker.due_settlement_report,
billing_worker.load_settlement_lines,
billing_worker.close_settlement_report,
billing_worker.end_dunning,
billing_worker.announce_trial_endings,
billing_worker.expire_checkouts,
billing_worker.receive_webhook,
billing_worker.process_webhooks,
billing_worker.ensure_outbox_partitions,
billing_worker.drop_outbox_partitions,
billing_worker.drop_idempotency_keys,
billing_worker.drop_webhook_payloads,
billing_worker.close_abandoned_runs
TO billing_worker;
