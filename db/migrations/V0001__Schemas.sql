-- Four schemas, one per kind of reader. Roles come from db/roles/roles.sql, before the first migration.

CREATE SCHEMA billing;
CREATE SCHEMA billing_api;
CREATE SCHEMA billing_worker;
CREATE SCHEMA billing_ops;

COMMENT ON SCHEMA billing IS
'Tables, types and internal functions of the billing engine. Nobody but billing_owner writes here.';
COMMENT ON SCHEMA billing_api IS
'Functions that change or preview state, and views with stable shapes, for internal systems and HTTP.';
COMMENT ON SCHEMA billing_worker IS
'Claim, start, settle, process and publish, for workers and the relay.';
COMMENT ON SCHEMA billing_ops IS
'Read-only views, integrity checks, timelines and runbook actions, for DBAs and people on call.';

-- Without IN SCHEMA on purpose: the form with IN SCHEMA cannot take back what PUBLIC gets by default.
ALTER DEFAULT PRIVILEGES FOR ROLE billing_owner REVOKE EXECUTE ON FUNCTIONS FROM public;
