-- What a relay may call: lease, confirm and give back events of the outbox. Granted anew on every run, so that this file
-- is the whole truth.
REVOKE ALL ON ALL TABLES IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_relay;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_relay;
-- Schema billing for its composite types, in which results are handed over.
GRANT USAGE ON SCHEMA billing, billing_worker TO billing_relay;

-- A default runs with the caller's rights.
GRANT EXECUTE ON FUNCTION billing.now TO billing_relay;

GRANT EXECUTE ON FUNCTION
billing_worker.lease_outbox,
billing_worker.confirm_outbox,
billing_worker.release_outbox
TO billing_relay;
