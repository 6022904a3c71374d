-- Who may do what in the job queue. The worker drives it; operators and readers look. Re-applied on every run, because
-- an upgrade of the queue brings new tables and functions.
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA procrastinate FROM public;
GRANT USAGE ON SCHEMA procrastinate TO billing_worker, billing_operator, billing_readonly;

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA procrastinate TO billing_worker;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA procrastinate TO billing_worker;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA procrastinate TO billing_worker;

GRANT SELECT ON ALL TABLES IN SCHEMA procrastinate TO billing_operator, billing_readonly;

REVOKE INSERT, UPDATE, DELETE ON procrastinate.applied_migration FROM billing_worker;
