-- What the HTTP door may call in its own right: find out who calls, store what gateways send, and tell how things stand.
-- The calls themselves are made in the role that the caller's key gives, billing_app or billing_operator, so its login is
-- a member of these too. Granted anew on every run, so that this file is the whole truth.
REVOKE ALL ON ALL TABLES IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_http;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA billing, billing_api, billing_worker, billing_ops FROM billing_http;
-- Schema billing for the catalogue of errors only.
GRANT USAGE ON SCHEMA billing, billing_worker TO billing_http;
GRANT SELECT ON billing.error_code TO billing_http;

-- A default runs with the caller's rights.
GRANT EXECUTE ON FUNCTION billing.now TO billing_http;

GRANT EXECUTE ON FUNCTION
billing_worker.authenticate_api_key,
billing_worker.gateway_accounts,
billing_worker.receive_webhook,
billing_worker.metrics,
billing_worker.schema_version
TO billing_http;
